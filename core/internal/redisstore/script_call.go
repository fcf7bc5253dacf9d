package redisstore

import (
	"context"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
)

// scriptCall is one run of a script, for a request or another operation. Its command is sent until
// the reply is an answer: again with the script's text if the server does not know the script,
// again with the server's time if the server is in another day of a calendar, and again with
// another script if the first one leaves the case to it.
//
// The arguments of a command are its own copies, because a command that hangs may outlive the calls
// for which it was made.
type scriptCall struct {
	request
	operation []any // the command's arguments, for operationKind

	kind         scriptKind
	sendText     bool // instead of the script's name
	wasUnknown   bool // the server did not know a script
	nowIsServers bool
	now          int64 // the time that the arguments assume, in microseconds, if they depend on a calendar
	script       *algorithm.Script
	fast         fastCommand
	cmd          valueCommand    // of the other kinds
	departure    *departure      // of the lane; may be nil
	caller       context.Context // see sendState
}

// scriptKind is the script that a scriptCall runs.
type scriptKind uint8

const (
	fastKind      scriptKind = iota // NAME_fast.lua
	decideKind                      // decide.lua
	equalKind                       // decide_equal.lua
	upToKind                        // decide_up_to.lua
	actionKind                      // that of the request's action
	manyKind                        // decide_many.lua, for a group of a pipeline
	operationKind                   // one that does not decide
)

// newDecision returns the scriptCall of a request.
func newDecision(r request) *scriptCall {
	c := &scriptCall{request: r}
	c.prepare()
	return c
}

// newOperation returns the scriptCall for a script that does not decide.
func newOperation(script *algorithm.Script, args []any) *scriptCall {
	return &scriptCall{kind: operationKind, script: script, operation: args}
}

// isDecision reports whether the script decides over a request.
func (c *scriptCall) isDecision() bool { return c.kind != operationKind }

// prepare chooses the script for the request.
func (c *scriptCall) prepare() {
	for i := range c.counters { // if not all calls can fit, one more than fits is enough
		if counter := &c.counters[i]; counter.Merges() && counter.Charges() {
			c.calls = min(c.calls, counter.Limit.Max/counter.Cost+1)
		}
	}
	c.now = assumedNow(c.counters)
	switch {
	case c.action != nil:
		c.kind = actionKind
	case isFast(&c.request):
		c.kind = fastKind
	case c.calls == 1:
		c.kind = decideKind
	default:
		c.kind = equalKind
	}
}

// assumedNow returns this process's time if a script's arguments depend on the time. Those of a
// calendar do, because Redis does not know time zones. The time decides nothing: a script whose own
// clock disagrees asks to be called again with its time.
func assumedNow(counters []algorithm.Counter) int64 {
	for i := range counters {
		if counters[i].Limit.Dated() {
			return nowMicros()
		}
	}
	return 0
}

func nowMicros() int64 { return time.Now().UnixMicro() }

// runScript sends a script call, outside of a pipeline, until it has an answer or an error. refusal
// is the error reply that the call got in a pipeline before, or nil.
func (s *shard) runScript(ctx context.Context, c *scriptCall, refusal error) (err error) {
	trips := 0
	if refusal != nil {
		trips = 1
	}
	var b backoff
	for again := true; again; trips++ {
		failed := s.process(ctx, c.command(ctx), refusal)
		refusal = nil
		if c.isDecision() {
			s.trips.count(failed, trips, 1, 1)
		}
		again, err = c.retry(failed)
		again = again || b.retrySplit(ctx, err)
	}
	if err != nil {
		return s.server.explainTooOld(err)
	}
	return nil
}

// command returns the next command to send.
func (c *scriptCall) command(ctx context.Context) command {
	var args []any
	switch c.kind {
	case fastKind:
		return c.fast.prepare(ctx, c)
	case decideKind:
		c.script = algorithm.DecideScript(c.counters)
		args = algorithm.AppendDecide(onCounters(c.script, c.counters), c.counters, c.charge, c.now)
	case equalKind:
		c.script = algorithm.EqualScript(c.counters)
		args = algorithm.AppendEqual(onCounters(c.script, c.counters), c.counters, c.calls, c.now)
	case upToKind:
		c.script = algorithm.UpToScript(c.counters)
		args = algorithm.AppendUpTo(onCounters(c.script, c.counters), c.counters, c.now)
	case actionKind:
		c.script = c.action.script(c.counters)
		args = c.action.appendArgs(onCounters(c.script, c.counters, c.action.furtherKeys()...), c.counters, c.now)
	case operationKind:
		args = c.operation
	}
	if c.sendText {
		args = asEval(args, c.script)
	}
	c.cmd = valueCommand{redis.NewCmd(ctx, args...), sendState{departure: c.departure, caller: c.caller}, guard{c.proof, args[3]}}
	return &c.cmd
}

// retry reports whether the call must be sent again, in another form, after the command ended with
// this error.
func (c *scriptCall) retry(err error) (again bool, _ error) {
	switch {
	case isReply(err, "NOSCRIPT") && !c.sendText:
		c.sendText, c.wasUnknown = true, true
		return true, nil
	case c.isUnproved(err):
		return false, errUnproved
	case err != nil:
		return false, nameForeignKeys(err, c.keyNames)
	case c.kind == fastKind && c.fast.isUncommon():
		c.kind, c.sendText = equalKind, false
		return true, nil
	case c.kind == fastKind || c.kind == operationKind:
		return false, nil
	}
	return c.retryWithServerTime()
}

// isUnproved reports whether the call was not decided because its proof did not hold. If the server
// has refuted the proof, isUnproved ends it.
func (c *scriptCall) isUnproved(err error) bool {
	switch {
	case c.proof == nil:
		return false
	case isRefuted(err):
		c.proof.refute(err)
		return true
	}
	values, _ := c.cmd.Val().([]any)
	return err == nil && len(values) == 1 && values[0] == unproved
}

// retryWithServerTime reports whether the arguments assumed another day of a calendar than the
// server's.
func (c *scriptCall) retryWithServerTime() (again bool, _ error) {
	values, _ := c.cmd.Val().([]any)
	now := algorithm.RepeatAt(values)
	switch {
	case now == 0:
		return false, nil
	case c.nowIsServers:
		return false, fmt.Errorf("the script's clock, %d µs since the epoch, left the calendar's day while it was asked", now)
	}
	c.now, c.nowIsServers = now, true
	return true, nil
}

// shardKey returns a key that determines the call's shard.
func (c *scriptCall) shardKey() []byte {
	if c.kind == operationKind {
		return []byte(argKeys(c.operation)[0])
	}
	return c.counters[0].Key
}

// keyNames returns the keys of the call, for a message.
func (c *scriptCall) keyNames() (keys []string) {
	if c.kind == operationKind {
		return argKeys(c.operation)
	}
	for i := range c.counters {
		keys = append(keys, string(c.counters[i].Key))
	}
	return keys
}
