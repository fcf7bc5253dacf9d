package redisstore

import (
	"errors"
	"fmt"
	"sync"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
)

// scriptReply is the reply to a decision.
type scriptReply struct {
	now   int64
	texts []string // two for each counter; of an operation, the whole reply
	calls int64    // how many calls the script received
}

// reply returns the reply to a script of its own.
func (c *scriptCall) reply() (r scriptReply, err error) {
	texts := c.cmd.Val()
	if c.operation != nil {
		return scriptReply{texts: texts}, nil
	}
	now, err := algorithm.ReadTime(texts)
	if err != nil {
		return r, fmt.Errorf("the script replied %.99q: %w", texts, err)
	}
	return scriptReply{now, texts[1:], c.op.Calls}, nil
}

// scratch is memory for reading a reply. It is reused, because as a local variable it cost a direct
// call an allocation of 320 bytes (BenchmarkDirect).
type scratch struct{ found []algorithm.Found }

// room returns memory for n counters.
func (s *scratch) room(n int) []algorithm.Found {
	for len(s.found) < n {
		s.found = append(s.found, algorithm.Found{})
	}
	return s.found[:n]
}

var scratches = sync.Pool{New: func() any { return new(scratch) }}

// readVerdicts sets the verdicts of a request that has ahead equal calls before it: see algorithm.Op.Read.
func (a *scriptReply) readVerdicts(r *request, ahead int64, verdicts []algorithm.Verdict, s *scratch) (passed int64, err error) {
	if r.operation != nil {
		return 0, r.operation.read(a.texts)
	}
	passed, err = r.op.Read(a.texts, a.now, ahead, a.calls, verdicts, s.room(len(r.op.Counters)))
	switch {
	case errors.Is(err, algorithm.ErrForeign):
		return 0, fmt.Errorf("%w: one of %q", ErrForeign, r.keyNames())
	case err != nil:
		return 0, fmt.Errorf("the script replied %.99q: %w", a.texts, err)
	}
	return passed, nil
}

// keyNames returns the keys of the request, for a message.
func (r *request) keyNames() (keys []string) {
	for i := range r.op.Counters {
		keys = append(keys, string(r.op.Counters[i].Key))
	}
	return keys
}
