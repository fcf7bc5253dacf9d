package redisstore

import (
	"bytes"
	"context"

	"github.com/redis/go-redis/v9"
)

// pipeline is the calls of a lane that leave together. Its room is used again by the next.
type pipeline struct {
	calls   []*laneCall
	groups  []group
	table   []int32 // of the groups, by hash: the place of one, plus one
	cmds    []redis.Cmder
	pending []int
	tripErr error // errOpen if the last trip was not made

	answered, unknownScript bool // some call was answered; the server did not know a script
}

// group is the tickets that ask the same, which leave as one script call.
type group struct {
	scriptCall
	first *laneCall
	hash  uint64
	err   error
}

// run sends the tickets and waits for what is replied.
func (p *pipeline) run(s *shard, l *lane, tickets []*laneCall) {
	p.calls, p.answered, p.unknownScript = append(p.calls[:0], tickets...), false, false
	p.groupCalls()
	ctx, cancel := context.WithTimeout(context.Background(), s.timeout)
	defer cancel()
	p.pending = p.pending[:0]
	for i := range p.groups {
		g := &p.groups[i]
		g.prepare(g.first.counters, g.first.charge, g.calls)
		g.unsent = &l.unsent
		p.pending = append(p.pending, i)
	}
	for trips := 0; len(p.pending) > 0; trips++ {
		p.send(ctx, s)
		s.trips.count(p.tripErr, trips, len(p.calls), len(p.groups))
	}
	if p.answered {
		s.server.answered(p.unknownScript)
	}
}

// ask sends what is still to be asked, in one trip.
func (p *pipeline) send(ctx context.Context, s *shard) {
	p.cmds = p.cmds[:0]
	for _, i := range p.pending {
		p.cmds = append(p.cmds, p.groups[i].command(ctx))
	}
	if p.tripErr = s.pipelines.processAll(ctx, p.cmds); p.tripErr != nil {
		for _, i := range p.pending {
			p.groups[i].err = p.tripErr
		}
		p.pending = nil
		return
	}
	again := p.pending[:0]
	for at, i := range p.pending {
		g := &p.groups[i]
		repeat, err := g.retry(p.cmds[at].Err())
		if g.err = err; repeat {
			again = append(again, i)
		}
		p.answered, p.unknownScript = p.answered || err == nil, p.unknownScript || g.wasUnknown
	}
	p.pending = again
}

// sort groups the tickets that ask the same, in the order in which they came.
func (p *pipeline) groupCalls() {
	size := 8
	for size < 2*len(p.calls) {
		size *= 2
	}
	if cap(p.table) < size {
		p.table = make([]int32, size)
	}
	p.table = p.table[:size]
	clear(p.table)
	clear(p.groups)
	p.groups = p.groups[:0]
	for _, t := range p.calls {
		g := p.groupOf(t)
		t.group, t.ahead = int32(g), p.groups[g].calls
		p.groups[g].calls += t.calls
	}
}

// groupOf is the place of the group that a ticket belongs to.
func (p *pipeline) groupOf(t *laneCall) int {
	at := int(t.hash >> 32 % uint64(len(p.table))) // the lowest bits say which lane, and are the same for all
	if t.canMerge() {
		for ; p.table[at] != 0; at = (at + 1) % len(p.table) {
			if g := &p.groups[p.table[at]-1]; g.hash == t.hash && g.first.equals(t) {
				return int(p.table[at] - 1)
			}
		}
		p.table[at] = int32(len(p.groups) + 1)
	}
	p.groups = append(p.groups, group{first: t, hash: t.hash})
	return len(p.groups) - 1
}

// merges says whether what the ticket asks can be decided together with others that ask the same.
func (t *laneCall) canMerge() bool {
	for i := range t.counters {
		if !t.counters[i].Merges() {
			return false
		}
	}
	return t.charge
}

// asksLike says whether two tickets that merge ask the same.
func (t *laneCall) equals(other *laneCall) bool {
	if len(t.counters) != len(other.counters) || !other.charge {
		return false
	}
	for i := range t.counters {
		a, b := &t.counters[i], &other.counters[i]
		if a.Cost != b.Cost || !bytes.Equal(a.Key, b.Key) || !a.Limit.Equal(b.Limit) {
			return false
		}
	}
	return true
}

// end hands out the answers.
func (p *pipeline) finish() {
	for _, t := range p.calls {
		g := &p.groups[t.group]
		if g.err != nil {
			t.finish(g.err)
			continue
		}
		t.reply = g.reply()
		t.finish(nil)
	}
	clear(p.calls)
}
