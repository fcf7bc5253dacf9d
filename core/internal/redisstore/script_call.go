package redisstore

import (
	"context"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
)

// scriptCall is one run of a script, for a request or another operation. Its command is sent until
// the reply is an answer: again with the script's text if the server does not know the script, and
// again with the server's time if the server is in another day of a calendar.
//
// The arguments of a command are its own copies, because a command that hangs may outlive the calls
// for which it was made.
type scriptCall struct {
	request
	nested bool // the operation's reply is a list of anything

	sendText     bool // instead of the script's name
	wasUnknown   bool // the server did not know the script
	nowIsServers bool
	now          int64 // the time that the arguments assume, in microseconds, if they depend on a calendar
	script       *algorithm.Script
	cmd          listCommand
	value        valueCommand    // in place of cmd, for a nested reply
	departure    *departure      // of the lane; may be nil
	caller       context.Context // see sendState

	// Room for the arguments of a call with one counter, which saves a direct call two allocations
	// (BenchmarkDirect).
	key  string
	room [5]any
}

// operation is a run of a script that does not decide. It must not change once it is in a request, because
// a command may outlive its caller.
type operation struct {
	// args makes the arguments. at is about now, in microseconds.
	args func(at int64) (*algorithm.Script, []any)
	// read reads the reply to a request, in the caller's goroutine. It is nil for an operation that is none.
	read func(reply []string) error
}

// listCommand is a command whose reply is a list of integers and strings.
type listCommand struct {
	*redis.StringSliceCmd
	sent sendState
}

// NoRetry implements redis.Cmder.
func (c *listCommand) NoRetry() bool { return true }

// Args implements redis.Cmder.
func (c *listCommand) Args() []any {
	return c.sent.write(c.StringSliceCmd.Args())
}

func (c *listCommand) state() *sendState { return &c.sent }

// newDecision returns the scriptCall of a request.
func newDecision(r request) *scriptCall {
	c := &scriptCall{request: r}
	c.prepare()
	return c
}

// newOperation returns the scriptCall for a script that does not decide.
func newOperation(args func(at int64) (*algorithm.Script, []any)) *scriptCall {
	return &scriptCall{request: request{operation: &operation{args: args}}}
}

// isRequest reports whether the call is for a request: it decides, or settles a bill.
func (c *scriptCall) isRequest() bool { return c.operation == nil || c.operation.read != nil }

// prepare prepares the call for its first command.
func (c *scriptCall) prepare() {
	for i := range c.op.Counters { // if not all calls can fit, one more than fits is enough
		if counter := &c.op.Counters[i]; c.op.Calls > 1 && counter.Charges() {
			c.op.Calls = min(c.op.Calls, counter.Limit.Max/counter.Cost+1)
		}
	}
	c.now = assumedNow(c.op.Counters)
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
		if c.isRequest() {
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
	args := c.args()
	if c.sendText {
		args = asEval(args, c.script)
	}
	if c.nested {
		c.value = valueCommand{Cmd: redis.NewCmd(ctx, args...)}
		return &c.value
	}
	c.cmd = listCommand{redis.NewStringSliceCmd(ctx, args...), sendState{departure: c.departure, caller: c.caller}}
	return &c.cmd
}

// args makes the arguments of the next command, and sets the script.
func (c *scriptCall) args() (args []any) {
	if c.operation != nil {
		c.script, args = c.operation.args(c.now)
		return args
	}
	counters, record := c.op.Counters, c.op.Recorded()
	c.script = c.op.Script()
	if len(counters) == 1 && record == nil {
		c.key = string(counters[0].Key)
		return c.op.Append(append(appendArgs(c.room[:0], c.script, 1), &c.key), c.now)
	}
	return c.op.Append(onKeys(c.script, len(counters), func(i int) []byte { return counters[i].Key }, record, 2+3*len(counters)), c.now)
}

// retry reports whether the call must be sent again, in another form, after the command ended with
// this error.
func (c *scriptCall) retry(err error) (again bool, _ error) {
	switch {
	case isReply(err, "NOSCRIPT") && !c.sendText:
		c.sendText, c.wasUnknown = true, true
		return true, nil
	case err != nil && c.proof != nil && isRefuted(err):
		c.proof.refute(err)
		return false, errUnproved
	case err != nil:
		return false, nameForeignKeys(err, c.keyNames)
	case c.nested:
		return false, nil
	}
	if !c.isRequest() {
		return false, nil
	}
	now := algorithm.OtherDay(c.cmd.Val())
	return now > 0, c.assume(now)
}

// assume makes the next command assume a time of the server, if that is not 0.
func (c *scriptCall) assume(now int64) error {
	if now > 0 && c.nowIsServers {
		return fmt.Errorf("the script's clock, %d µs since the epoch, left the calendar's day while it was asked", now)
	}
	if now > 0 {
		c.now, c.nowIsServers = now, true
	}
	return nil
}

// keyNames returns the keys of the call, for a message.
func (c *scriptCall) keyNames() (keys []string) {
	if c.operation == nil {
		return c.request.keyNames()
	}
	_, args := c.operation.args(c.now)
	return argKeys(args)
}
