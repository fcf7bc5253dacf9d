package redisstore

import "github.com/accesslimit/accesslimit/core/internal/algorithm"

// The commands are EVALSHA, the script, how many keys, the keys, and the script's arguments. All of
// it is the command's own copy, because a command that hangs may outlive the call that it was made
// for.

// newCommand begins a command for so many keys, with room for so many arguments.
func newCommand(script *algorithm.Script, keys, args int) []any {
	return appendCommand(make([]any, 0, 3+keys+args), script, keys)
}

// appendCommand begins a command in some room.
func appendCommand(room []any, script *algorithm.Script, keys int) []any {
	return append(room, "evalsha", script.Name, keys)
}

// asEval is the same call with the script's text, for a server that does not know it yet.
func asEval(call []any, script *algorithm.Script) []any {
	return append([]any{"eval", script.Text}, call[2:]...)
}

// onCounters begins a command whose keys are those of counters.
func onCounters(script *algorithm.Script, counters []algorithm.Counter) []any {
	args := 1 + 6*len(counters)
	for i := range counters {
		args += 1 + len(counters[i].Watched)
	}
	call := newCommand(script, len(counters), args)
	for i := range counters {
		call = append(call, string(counters[i].Key))
	}
	return call
}

// onCharges begins a command whose keys are those of charges.
func onCharges(script *algorithm.Script, charges []algorithm.Charge) []any {
	call := newCommand(script, len(charges), 9*len(charges))
	for i := range charges {
		call = append(call, string(charges[i].Key))
	}
	return call
}

// onKey begins a command about one key.
func onKey(script *algorithm.Script, key []byte) []any {
	return append(newCommand(script, 1, 6), string(key))
}

func decideCall(script *algorithm.Script, counters []algorithm.Counter, charge bool, at int64) []any {
	return algorithm.AppendDecide(onCounters(script, counters), counters, charge, at)
}

func equalCall(script *algorithm.Script, counters []algorithm.Counter, calls, at int64) []any {
	return algorithm.AppendEqual(onCounters(script, counters), counters, calls, at)
}

func giveBackCall(charges []algorithm.Charge) (*algorithm.Script, []any) {
	script := algorithm.GiveBackScript(charges)
	return script, algorithm.AppendGiveBack(onCharges(script, charges), charges)
}

func renewCall(slots []algorithm.Charge) (*algorithm.Script, []any) {
	return algorithm.Renew, algorithm.AppendRenew(onCharges(algorithm.Renew, slots), slots)
}
