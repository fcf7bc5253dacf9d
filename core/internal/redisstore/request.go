package redisstore

import (
	"fmt"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
)

// scriptCall is the whole command: EVALSHA, the script, how many keys, the keys, and the arguments that decide.lua and
// give_back.lua take: a first number, then six for each counter. All of it is its own copy, because a command that hangs may
// outlive the call that it was made for.
func scriptCall(script *algorithm.Script, counters []algorithm.Counter, first int64) []any {
	args := make([]any, 3, 4+7*len(counters))
	args[0], args[1], args[2] = "evalsha", script.SHA1, len(counters)
	for i := range counters {
		args = append(args, string(counters[i].Key))
	}
	args = append(args, first)
	for i := range counters {
		args = counters[i].Limit.AppendArgs(args, counters[i].Cost)
	}
	return args
}

// withText is the same call with the script's text, for a server that does not know it yet.
func withText(call []any, script *algorithm.Script) []any {
	return append([]any{"eval", script.Text}, call[2:]...)
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
