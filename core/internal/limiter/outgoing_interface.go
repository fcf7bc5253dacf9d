package limiter

import (
	"context"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/accesslimit/accesslimit/core/internal/engine"
)

// Outgoing is a rule for calls that go out, as core has prepared it.
type Outgoing struct {
	// Counted has the bucket of turns, then the limit of calls in flight if there is one.
	Counted *engine.Rule
	// Pause is asked beside them.
	Pause engine.Limit
	// Probe is a single slot, which the first call after a pause takes.
	Probe engine.Limit
	// CountDecision counts a decision for Stats. The reason and the source are core's.
	CountDecision func(reason, source string)
	// Report reports a call to the service, or is nil if it has no OnDecision.
	Report func(context.Context, OutgoingReport)
	// Counts has the other counts of the rule's calls. Rules of one name share it.
	Counts *OutgoingCounts
	// Source is where counters are kept, as core names it.
	Source string
	// StoreFailed counts and logs that the store did not answer a call. The rule is on the list of
	// attached rules for as long as somebody holds this function.
	StoreFailed func(err error)
}

// OutgoingReport describes a call to the service.
type OutgoingReport struct {
	Key            string
	Reason, Source string        // "" for a refusal by the server
	Waited         time.Duration // for the turn
	RetryAfter     time.Duration
	ByServer       bool
}

// OutgoingCounts are the counts of core.OutgoingStats.
type OutgoingCounts struct {
	Sent, GaveUp, Refused, Pauses, Waited atomic.Uint64
	WaitTime, Waiting                     atomic.Int64 // in nanoseconds; calls
}

// OutgoingTable has the OutgoingCounts of the rules for calls that go out. The zero table is empty.
type OutgoingTable struct {
	mu     sync.Mutex
	byName map[string]*OutgoingCounts
}

// Of returns the counts of the rules with a name.
func (t *OutgoingTable) Of(name string) *OutgoingCounts {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.byName == nil {
		t.byName = make(map[string]*OutgoingCounts)
	}
	if t.byName[name] == nil {
		t.byName[name] = new(OutgoingCounts)
	}
	return t.byName[name]
}

// Each calls do for each name, in alphabetical order.
func (t *OutgoingTable) Each(do func(name string, of *OutgoingCounts)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(t.byName)) {
		do(name, t.byName[name])
	}
}
