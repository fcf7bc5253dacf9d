package redisstore

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
)

// manyCall is one call of decide.lua for several groups of a pipeline, whose keys all differ.
// Each group is decided independently.
//
// When a script decides one key, the server spends about half of the time on the command itself:
// parsing it, setting up Lua, reading the clock. In a shared script, a key takes 0.78 of the cycles
// with 4 keys, 0.66 with 8, 0.63 with 16, and 0.59 with 24 or 48 (TokenBucket, Redis 7.0, calls in
// pipelines).
type manyCall struct {
	groups []*group // command puts them into the order of its arguments
	kinds  algorithm.KindSet
	hashes []uint64 // of the keys
	cmd    listCommand
}

// add adds a group, unless there would be more than mostKeys keys or the call already has one of
// the group's keys. It reports whether it added the group. Keys with equal hashes count as equal.
func (m *manyCall) add(g *group, c *common, mostKeys int) bool {
	before := len(m.hashes)
	if before > 0 && before+len(g.op.Counters) > mostKeys {
		return false
	}
	for i := range g.op.Counters {
		hash := g.hash
		if len(g.op.Counters) > 1 {
			hash = c.hashKey(g.op.Counters[i].Key)
		}
		if slices.Contains(m.hashes[:before], hash) {
			m.hashes = m.hashes[:before]
			return false
		}
		m.hashes = append(m.hashes, hash)
	}
	m.groups = append(m.groups, g)
	m.kinds |= algorithm.KindsOf(g.op.Counters)
	return true
}

// reset empties the call, but keeps its memory for the next one.
func (m *manyCall) reset() {
	clear(m.groups)
	*m = manyCall{groups: m.groups[:0], hashes: m.hashes[:0]}
}

// command returns the command, with the script's text instead of its hash if sendText is set.
func (m *manyCall) command(ctx context.Context, sendText bool, leaves *departure) command {
	script, groups := algorithm.DecideScript(m.kinds), m.groups
	for len(groups) > 0 {
		groups = groups[gatherForm(groups):]
	}
	args := append(m.appendKeys(newArgs(script, len(m.hashes), 1+len(m.groups)+2*len(m.hashes))), "")
	for first := 0; first < len(m.groups); {
		g, next := m.groups[first], first+1
		for next < len(m.groups) && m.groups[next].sameForm(g) {
			next++
		}
		args = g.op.AppendForm(args, next-first, g.now)
		first = next
	}
	if sendText {
		args = asEval(args, script)
	}
	m.cmd = listCommand{redis.NewStringSliceCmd(ctx, args...), sendState{departure: leaves}}
	return &m.cmd
}

// read hands the reply to the groups, and reports whether the reply is complete. A group
// whose counters are in another day is decided again.
func (m *manyCall) read() bool {
	replies := m.cmd.Val()
	now, err := algorithm.ReadTime(replies)
	switch {
	case err != nil || len(replies) != 1+2*len(m.hashes):
		m.fail(fmt.Errorf("the script replied %.99q for %d counters", replies, len(m.hashes)))
		return false
	}
	rest := replies[1:]
	for _, g := range m.groups {
		own := rest[:2*len(g.op.Counters)]
		rest = rest[len(own):]
		if algorithm.IsOtherDay(own) {
			if err := g.assume(now); err != nil {
				g.finish(err)
			}
			continue
		}
		g.finished, g.answer = true, scriptReply{now, own, g.op.Calls}
	}
	return true
}

// separate gives each group a script of its own.
func (m *manyCall) separate() {
	for _, g := range m.groups {
		g.joins = false
	}
}

// fail ends the groups with an error.
func (m *manyCall) fail(err error) {
	for _, g := range m.groups {
		g.finish(err)
	}
}

// isManyRefused reports whether the server refused a script before the script wrote anything,
// because of its keys, or because a command in it is unknown or not permitted.
func isManyRefused(err error) bool {
	return err != nil && (isRefuted(err) || isReply(err, "unknown command") || IsNoPermission(err))
}

// sameForm reports whether two groups have the same form, so that they are grouped in the arguments
// of decide.lua.
func (g *group) sameForm(other *group) bool {
	return g.op.Calls == other.op.Calls && g.now == other.now && algorithm.SameForm(g.op.Counters, other.op.Counters)
}

// gatherForm moves the groups of the same form as the first one to the front, and returns their
// number.
func gatherForm(groups []*group) (alike int) {
	first := groups[0]
	for i, g := range groups {
		if g.sameForm(first) {
			groups[alike], groups[i] = groups[i], groups[alike]
			alike++
		}
	}
	return alike
}

// appendKeys appends the keys of the groups. All keys are parts of one string and are passed by
// pointer, so that there are two allocations in all instead of two for each key.
func (m *manyCall) appendKeys(args []any) []any {
	var text strings.Builder
	text.Grow(100 * len(m.hashes))
	keys := make([]string, 0, len(m.hashes))
	for _, g := range m.groups {
		for i := range g.op.Counters {
			start := text.Len()
			text.Write(g.op.Counters[i].Key)
			keys = append(keys, text.String()[start:])
			args = append(args, &keys[len(keys)-1])
		}
	}
	return args
}
