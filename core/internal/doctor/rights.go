package doctor

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/accesslimit/accesslimit/core/internal/failure"
)

// right is a right that the Redis user needs, with a call that shows whether it is there, and changes
// nothing but the probe.
type right struct {
	command string
	args    func(probe string) []any // what follows the command
	need    need
}

// need says what a right is for.
type need int

const (
	toDecide need = iota
	toMark
	inCluster
	inRing
	toNotice
	toAudit
	toFollow
)

// lacking are the consequences of a missing right.
var lacking = map[need]string{
	toDecide: "limits do not work, or in part", toMark: "bans, blocks and overrides of other processes may not hold", inCluster: "limits do not work, or in part", inRing: "limits do not work",
	toNotice: "nobody warns of eviction, or says how data was lost", toAudit: "the audit cannot be read",
	toFollow: "a document with rules cannot be followed",
}

// rights are the rights that failure.RightsPage lists, for services. The probe is a string, so that
// writing a hash, a set or a stream there fails after the rights were checked. Without +set it may become a
// hash, which +pexpireat ends then, or +del.
var rights = []right{
	{"set", with("", "px", "5000"), toDecide},
	{"eval", func(probe string) []any { return []any{"return 1", 1, probe} }, toDecide},
	{"evalsha", func(probe string) []any { return []any{strings.Repeat("0", 40), 1, probe} }, toDecide},
	{"get", with(), toDecide}, {"mget", with(), toDecide},
	{"hset", with("x", "y"), toMark}, {"hdel", with("x"), toMark}, {"hget", with("x"), toMark}, {"hlen", with(), toMark},
	{"hmget", with("x"), toMark}, {"hscan", with(0), toMark}, {"persist", func(probe string) []any { return []any{probe + "-none"} }, toMark},
	{"xadd", with("no ID", "a", "b"), toMark}, {"xrange", with("-", "+", "count", 1), toMark}, {"zcard", with(), toMark},
	{"pexpireat", func(probe string) []any { return []any{probe, time.Now().Add(5 * time.Second).UnixMilli()} }, toDecide}, {"time", func(string) []any { return nil }, toDecide}, {"zadd", with("no number", "x"), toDecide},
	{"zcount", with(0, 1), toDecide}, {"zrange", with(0, 0), toDecide}, {"zrangebyscore", with(0, 1), toDecide}, {"zrem", with("x"), toDecide},
	{"zremrangebyscore", with(0, 1), toDecide}, {"zrevrange", with(0, 0), toDecide}, {"zscore", with("x"), toDecide},
	{"cluster|slots", func(string) []any { return nil }, inCluster}, {"asking", func(string) []any { return nil }, inCluster},
	{"ping", func(string) []any { return nil }, inRing},
	{"info", func(string) []any { return []any{"server"} }, toNotice},
	{"xrevrange", with("+", "-", "count", 1), toAudit},
	{"getrange", with(0, 0), toFollow}, {"del", with(), toDecide},
}

// with returns arguments that begin with the probe.
func with(args ...any) func(string) []any {
	return func(probe string) []any { return append([]any{probe}, args...) }
}

// writing are the commands that write the probe. They are not tried if memory is short.
var writing = []string{"set", "hset"}

// rights finds out exactly which rights the user of Redis lacks.
func (e *exam) rights(ctx context.Context, s *server) {
	lacks := make(map[need][]string)
	outside := false
	probe := fmt.Sprintf("%s:{~%d}:probe", e.Prefix, time.Now().UnixNano())
	var asked []right
	cmds, err := e.try(ctx, s, func(pipe redis.Pipeliner) {
		for _, r := range rights {
			if r.need == inCluster && !e.isCluster() || r.need == inRing && !e.isRing() || s.isNearlyFull() && slices.Contains(writing, r.command) {
				continue
			}
			words := []any{}
			for word := range strings.SplitSeq(r.command, "|") {
				words = append(words, word)
			}
			pipe.Do(ctx, append(words, r.args(probe)...)...)
			asked = append(asked, r)
		}
	})
	if err != nil {
		e.unseen("rights", s, "which rights are missing", err)
		return
	}
	for i, cmd := range cmds {
		switch text := fmt.Sprint(cmd.Err()); {
		case !failure.LacksRight(text):
		case isAboutKeys(text):
			outside = true
		default:
			lacks[asked[i].need] = append(lacks[asked[i].need], "+"+asked[i].command)
		}
	}
	e.reportRights(s, lacks, outside)
}

// isAboutKeys reports whether a missing right is one for keys, not for a command.
func isAboutKeys(text string) bool {
	do, _ := failure.Advice(failure.Refused, text)
	return do == failure.RightsForKeys
}

// try runs commands in one trip. The error says that none was answered.
func (e *exam) try(ctx context.Context, s *server, queue func(redis.Pipeliner)) (cmds []redis.Cmder, err error) {
	return ask(ctx, e, func(ctx context.Context) ([]redis.Cmder, error) {
		cmds, err := s.node.Pipelined(ctx, func(pipe redis.Pipeliner) error {
			queue(pipe)
			return nil
		})
		if _, answered := err.(redis.Error); answered { // that of the first command that failed
			err = nil
		}
		return cmds, err
	})
}

func (e *exam) reportRights(s *server, lacks map[need][]string, outside bool) {
	if outside {
		e.add(Problem, "rights", s, fmt.Sprintf("the Redis user may not use keys that begin with %q", e.Prefix+":"), fmt.Sprintf("ACL SETUSER USER ~%s:*", e.Prefix))
	}
	for _, need := range []need{toDecide, toMark, inCluster, inRing, toNotice, toAudit, toFollow} {
		if len(lacks[need]) == 0 {
			continue
		}
		level := Problem
		if need >= toNotice {
			level = Note
		}
		missing := strings.Join(lacks[need], " ")
		e.add(level, "rights", s, fmt.Sprintf("the Redis user lacks %s: %s", missing, lacking[need]), "ACL SETUSER USER "+missing)
	}
	if len(lacks) == 0 && !outside {
		e.add(OK, "rights", s, "the Redis user has all rights that "+failure.RightsPage+" lists for services", "")
	}
}
