package toplist

import (
	"slices"
	"sync/atomic"
	"testing"
	"time"
)

// A rule that refuses again in the moment when it is retired is among those of the next flush. Once
// it was retired for the new refusal, too, and was in no list from then on.
func TestARefusalWhileARuleIsRetired(t *testing.T) {
	table := newTable(t, NewMemory(), new(time.Duration))
	var seconds atomic.Int64 // each look at the clock takes one, so that nothing is sampled
	table.now = func() time.Duration { return time.Duration(seconds.Add(1)) * time.Second }
	rule, done := table.Rule("r"), make(chan struct{})
	go func() {
		defer close(done)
		for range 1_500_000 {
			rule.NoteRefusal(1, []byte("user:1"))
		}
	}()
	for running := true; running; {
		rule.take(Refused)
		table.retire([]*Rule{rule})
		if active, flushed := isActive(rule); active != flushed {
			t.Errorf("the rule is active: %t; it is in the next flush: %t", active, flushed)
			break
		}
		select {
		case <-done:
			running = false
		default:
		}
	}
	<-done
}

// isActive reports whether a rule is active, and whether the next flush includes it.
func isActive(r *Rule) (active, flushed bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.active, slices.Contains(r.table.inTurn(), r)
}
