package redisstore

import (
	"fmt"

	"github.com/redis/go-redis/v9"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
)

// The commands are EVALSHA, the script, how many keys, the keys, and the arguments that stand at the head of the script. All of
// it is its own copy, because a command that hangs may outlive the call that it was made for.

// command begins a command with room for so many arguments.
func newCommand(script *algorithm.Script, keys, args int) []any {
	return appendCommand(make([]any, 0, 3+keys+args), script, keys)
}

// commandIn begins a command in some room.
func appendCommand(room []any, script *algorithm.Script, keys int) []any {
	return append(room, "evalsha", script.Name, keys)
}

// withText is the same call with the script's text, for a server that does not know it yet.
func asEval(call []any, script *algorithm.Script) []any {
	return append([]any{"eval", script.Text}, call[2:]...)
}

// yes and no are boxed once for all.
var boxedOne, boxedZero any = int64(1), int64(0)

func decideCall(script *algorithm.Script, counters []algorithm.Counter, charge bool, at int64) []any {
	args := 1 + 6*len(counters)
	for i := range counters {
		args += len(counters[i].Watched)
	}
	call := newCommand(script, len(counters), args)
	for i := range counters {
		call = append(call, string(counters[i].Key))
	}
	flag := boxedZero
	if charge {
		flag = boxedOne
	}
	call = append(call, flag)
	for i := range counters {
		call = counters[i].AppendArgs(call, at)
	}
	return algorithm.AppendWatched(call, counters)
}

func equalCall(script *algorithm.Script, counters []algorithm.Counter, calls, at int64) []any {
	call := newCommand(script, len(counters), 1+6*len(counters))
	for i := range counters {
		call = append(call, string(counters[i].Key))
	}
	call = append(call, calls)
	for i := range counters {
		call = counters[i].AppendArgs(call, at)
	}
	return call
}

// reserveCall has the patience where decide.lua takes the algorithm.
func reserveCall(c *algorithm.Counter, patience int64) []any {
	call := append(newCommand(&algorithm.Reserve, 1, 6), string(c.Key))
	first := len(call)
	call = c.AppendArgs(call, 0)
	call[first] = patience
	return call
}

func giveBackCall(charges []algorithm.Charge) []any {
	call := newCommand(&algorithm.GiveBack, len(charges), 8*len(charges))
	for i := range charges {
		call = append(call, string(charges[i].Key))
	}
	for i := range charges {
		call = charges[i].AppendArgs(call)
	}
	return call
}

func renewCall(slots []algorithm.Charge) []any {
	call := newCommand(&algorithm.Renew, len(slots), 1+len(slots))
	for i := range slots {
		call = append(call, string(slots[i].Key))
	}
	call = append(call, slots[0].Mark)
	for i := range slots {
		call = append(call, slots[i].Limit.Window)
	}
	return call
}

func recordsCall(key []byte, limit *algorithm.Limit) []any {
	return append(newCommand(&algorithm.Records, 1, 1), string(key), limit.Window)
}

func imposeCall(key []byte, span int64) []any {
	return append(newCommand(&algorithm.ImposeBan, 1, 1), string(key), span)
}

// readReservation reads what reserve.lua replies: the same for its counter, with the wait before the position.
func readReservation(numbers []int64) (algorithm.Verdict, error) {
	if len(numbers) != 6 {
		return algorithm.Verdict{}, fmt.Errorf("the script replied %d numbers for a reservation", len(numbers))
	}
	return algorithm.Verdict{
		At: numbers[0], RetryAfter: numbers[1], Remaining: numbers[2], ResetAfter: numbers[3], Wait: numbers[4], Position: numbers[5],
	}, nil
}

// readRecords reads what records.lua replies: three values for each call.
func readRecords(cmd *redis.Cmd) ([]algorithm.Record, error) {
	values, err := cmd.Slice()
	if err != nil || len(values)%3 != 0 {
		return nil, fmt.Errorf("the script replied %d values for records of three: %w", len(values), err)
	}
	records := make([]algorithm.Record, 0, len(values)/3)
	for i := 0; i < len(values); i += 3 {
		at, known := values[i].(int64)
		cost, whole := values[i+1].(int64)
		note, text := values[i+2].(string)
		if !known || !whole || !text {
			return nil, fmt.Errorf("the script replied a record of %T, %T and %T", values[i], values[i+1], values[i+2])
		}
		records = append(records, algorithm.Record{At: at, Cost: cost, Note: note})
	}
	return records, nil
}
