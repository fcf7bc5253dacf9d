package redisstore

import (
	"fmt"
	"sync"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
)

// scriptReply is the reply to a decision.
type scriptReply struct {
	kind   scriptKind
	text   string   // of fastKind
	texts  []string // of manyKind
	values []any    // of the other kinds
	calls  int64    // how many calls the script received
}

func (c *scriptCall) reply() scriptReply {
	if c.kind == fastKind {
		return scriptReply{kind: fastKind, text: c.fast.Val(), calls: c.calls}
	}
	values, _ := c.cmd.Val().([]any)
	return scriptReply{kind: c.kind, values: values, calls: c.calls}
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

// readVerdicts sets the verdicts of a request that has ahead equal calls before it. They are those
// of the last of its calls that passed, or of the first call if none did. It returns how many
// passed, except for a call that decide.lua decides, or an action.
func (a *scriptReply) readVerdicts(r *request, ahead int64, verdicts []algorithm.Verdict, s *scratch, of *common) (passed int64, err error) {
	switch a.kind {
	case decideKind:
		return 0, algorithm.ReadDecided(a.values, r.counters, r.charge, verdicts)
	case actionKind:
		return 0, r.action.read(a.values, r.counters, verdicts)
	}
	counters, found := r.counters, s.room(len(r.counters))
	if err := a.readFound(counters, found); err != nil {
		return 0, fmt.Errorf("the script replied %.99q, %.99q, %.99q: %w", a.text, a.texts, a.values, err)
	}
	all := a.calls
	for i := range counters {
		all = found[i].Fit(&counters[i], all)
	}
	passed = min(max(0, all-ahead), r.calls)
	for i := range counters {
		found[i].Nth(&counters[i], ahead+max(0, passed-1), all, &verdicts[i])
		if found[i].Now == 0 { // the reply has no time, because the answer does not depend on it
			verdicts[i].At = of.Time()
		}
	}
	return passed, nil
}

// readFound reads what a script found before it charged anything.
func (a *scriptReply) readFound(counters []algorithm.Counter, found []algorithm.Found) error {
	switch a.kind {
	case fastKind:
		return counters[0].Limit.ReadFast(a.text, counters[0].Cost, a.calls, &found[0])
	case manyKind:
		return algorithm.ReadMany(a.texts, counters, a.calls, found)
	default:
		return algorithm.ReadEqual(a.values, counters, found)
	}
}
