package redisstore

import (
	"context"
	"fmt"

	"github.com/redis/go-redis/v9"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
)

// request is the KEYS and ARGV of one script call, its own copies: it may outlive the call that it was made for.
type request struct {
	keys []string
	argv []any
}

// newRequest forms what decide.lua and give_back.lua take: a first number, then six arguments for each counter.
func newRequest(counters []algorithm.Counter, first int64) *request {
	req := &request{keys: make([]string, len(counters)), argv: make([]any, 1, 1+6*len(counters))}
	req.argv[0] = first
	for i := range counters {
		c := &counters[i]
		req.keys[i] = string(c.Key)
		req.argv = append(req.argv, c.Limit.Kind.Tag(), c.Cost)
		for _, number := range c.Limit.Args() {
			req.argv = append(req.argv, number)
		}
	}
	return req
}

// command is the whole call, EVALSHA with a script's SHA1 or EVAL with its text.
func (r *request) command(ctx context.Context, command, script string) *redis.Cmd {
	args := make([]any, 0, 3+len(r.keys)+len(r.argv))
	args = append(args, command, script, len(r.keys))
	for _, key := range r.keys {
		args = append(args, key)
	}
	return redis.NewCmd(ctx, append(args, r.argv...)...)
}

// readReply reads what decide.lua replies: now, then three numbers for each counter.
func readReply(numbers []int64, verdicts []algorithm.Verdict) (at int64, err error) {
	if len(numbers) != 1+3*len(verdicts) {
		return 0, fmt.Errorf("the script replied %d numbers for %d counters", len(numbers), len(verdicts))
	}
	for i := range verdicts {
		of := numbers[1+3*i:]
		verdicts[i] = algorithm.Verdict{RetryAfter: of[0], Remaining: of[1], ResetAfter: of[2]}
	}
	return numbers[0], nil
}
