package redisstore

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/redis/go-redis/v9"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
)

// asking is one script call: what so many equal calls ask together. It is asked until the reply is an answer: again with the
// script's text for a server that does not know it, again with the server's time where a calendar was that of another day, and
// again by another script where the first leaves it to that.
//
// Its arguments are its own copies, because a command that hangs may outlive the calls that it was made for.
type scriptCall struct {
	counters      []algorithm.Counter // what each of the calls is charged to
	charge        bool
	calls         int64
	kind          scriptKind
	assumedNow    int64 // about now, where a calendar is asked for
	sendText      bool
	wasUnknown    bool // the server did not know a script
	timeCorrected bool // asked again with the server's time
	script        *algorithm.Script
	fastCmd       stringCommand // of byFast
	listCmd       valueCommand  // of the other forms
	unsent        *atomic.Bool  // cleared when a command is written, if not nil
	key           string
	args          [5]any
}

// form is by which script calls are decided.
type scriptKind uint8

const (
	fastKind   scriptKind = iota // NAME_fast.lua
	decideKind                   // decide.lua
	equalKind                    // decide_equal.lua
)

func (a *scriptCall) prepare(counters []algorithm.Counter, charge bool, calls int64) {
	for i := range counters { // of more calls than ever fit, one more says all
		if c := &counters[i]; c.Merges() {
			calls = min(calls, c.Limit.Max/c.Cost+1)
		}
	}
	*a = scriptCall{counters: counters, charge: charge, calls: calls, assumedNow: assumedNow(counters)}
	switch {
	case len(counters) == 1 && charge && counters[0].Merges() && counters[0].Limit.FastScript() != nil:
		a.kind = fastKind
	case calls == 1:
		a.kind = decideKind
	default:
		a.kind = equalKind
	}
}

// command makes the command that asks now.
func (a *scriptCall) command(ctx context.Context) command {
	if a.kind == fastKind {
		return a.fastCommand(ctx)
	}
	var call []any
	if a.kind == decideKind {
		a.script = algorithm.DecideScript(a.counters)
		call = decideCall(a.script, a.counters, a.charge, a.assumedNow)
	} else {
		a.script = algorithm.EqualScript(a.counters)
		call = equalCall(a.script, a.counters, a.calls, a.assumedNow)
	}
	if a.sendText {
		call = asEval(call, a.script)
	}
	a.listCmd = valueCommand{redis.NewCmd(ctx, call...), sendState{unsent: a.unsent}}
	return &a.listCmd
}

// fastCommand allocates as little as it can: the key is a pointer, and the reply a string, because an interface around either
// would be one more each.
func (a *scriptCall) fastCommand(ctx context.Context) command {
	c := &a.counters[0]
	a.script, a.key = c.Limit.FastScript(), string(c.Key)
	call := append(appendCommand(a.args[:0], a.script, 1), &a.key, c.Limit.FastArg(c.Cost, a.calls))
	if a.sendText {
		call = asEval(call, a.script)
	}
	a.fastCmd = stringCommand{redis.NewStringCmd(ctx, call...), sendState{unsent: a.unsent}}
	return &a.fastCmd
}

// heed says what to make of the command that came back with this error: whether it is to be asked again, differently.
func (a *scriptCall) retry(err error) (again bool, _ error) {
	switch {
	case isReply(err, "NOSCRIPT") && !a.sendText:
		a.sendText, a.wasUnknown = true, true
		return true, nil
	case err != nil:
		return false, nameForeignKeys(err, a.counters)
	case a.kind == fastKind && a.fastCmd.Val() == algorithm.Uncommon:
		a.kind, a.sendText = equalKind, false
		return true, nil
	case a.kind == fastKind:
		return false, nil
	}
	reply, _ := a.listCmd.Val().([]any)
	now := algorithm.Untimely(reply)
	if now > 0 && a.timeCorrected {
		return false, fmt.Errorf("the script's clock, %d µs since the epoch, left the calendar's day while it was asked", now)
	}
	if now > 0 {
		a.timeCorrected, a.assumedNow = true, now
	}
	return now > 0, nil
}

// answer is what was replied to an asking.
type scriptReply struct {
	kind   scriptKind
	text   string // of byFast
	values []any  // of the other forms
	calls  int64
}

func (a *scriptCall) reply() scriptReply {
	if a.kind == fastKind {
		return scriptReply{kind: fastKind, text: a.fastCmd.Val(), calls: a.calls}
	}
	values, _ := a.listCmd.Val().([]any)
	return scriptReply{kind: a.kind, values: values, calls: a.calls}
}

// room is what it takes to work out an answer.
type scratch struct{ found []algorithm.Found }

// read works out the verdicts of calls that stand behind so many others: those of the last of them that passed, or of the first. It says
// how many passed, of what was asked for as one; of a call that decide.lua decides, nothing.
func (a *scriptReply) readVerdicts(counters []algorithm.Counter, behind, calls int64, verdicts []algorithm.Verdict, r *scratch) (passed int64, _ error) {
	if a.kind == decideKind {
		return 0, algorithm.ReadDecided(a.values, verdicts)
	}
	for len(r.found) < len(counters) {
		r.found = append(r.found, algorithm.Found{})
	}
	found := r.found[:len(counters)]
	var err error
	if a.kind == fastKind {
		err = counters[0].Limit.ReadFast(a.text, counters[0].Cost, a.calls, &found[0])
	} else {
		err = algorithm.ReadEqual(a.values, counters, found)
	}
	if err != nil {
		return 0, fmt.Errorf("the script replied %.99q, %.99q: %w", a.text, a.values, err)
	}
	all := a.calls
	for i := range counters {
		all = found[i].Fit(&counters[i], all)
	}
	passed = min(max(0, all-behind), calls)
	for i := range counters {
		found[i].Nth(&counters[i], behind+max(0, passed-1), all, &verdicts[i])
		if found[i].Now == 0 { // the reply had no time, because the answer does not depend on it
			verdicts[i].At = nowMicros()
		}
	}
	return passed, nil
}
