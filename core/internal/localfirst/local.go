package localfirst

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
	"github.com/accesslimit/accesslimit/core/internal/memstore"
)

// local counts in this process what the store behind cannot answer for, as far as counters want that: by their share of the limit,
// from zero. What was counted stays until its time is over, so a store that fails and comes back every second admits no more for it.
type local struct {
	maxKeys int
	counts  atomic.Pointer[memstore.Store] // nil until it is needed
	mu      sync.Mutex                     // held to make it, and to keep a share
	shares  map[share]*algorithm.Limit
	closed  bool
}

// share is a part of a limit.
type share struct {
	limit *algorithm.Limit
	part  float64
}

// maxShares bounds how many parts of limits are kept made.
const maxShares = 1000

// of is the limit that a counter has here.
func (l *local) of(limit *algorithm.Limit, part float64) *algorithm.Limit {
	if part == 1 {
		return limit
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	made, ok := l.shares[share{limit, part}]
	if !ok {
		if l.shares == nil || len(l.shares) >= maxShares {
			l.shares = make(map[share]*algorithm.Limit)
		}
		made = limit // of two rules together, perhaps, whose share nobody could look at before
		if shared, err := limit.Share(part); err == nil {
			made = &shared
		}
		l.shares[share{limit, part}] = made
	}
	return made
}

// store is where it counts.
func (l *local) store() *memstore.Store {
	if s := l.counts.Load(); s != nil {
		return s
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if s := l.counts.Load(); s != nil {
		return s
	}
	s := memstore.New(l.maxKeys, nil)
	if l.closed {
		s.Close()
	}
	l.counts.Store(s)
	return s
}

// reset forgets a key.
func (l *local) reset(ctx context.Context, key []byte) {
	if s := l.counts.Load(); s != nil {
		_ = s.Reset(ctx, key) // it cannot fail here
	}
}

func (l *local) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	if s := l.counts.Load(); s != nil {
		s.Close()
	}
}

// wanted says whether the store failed for a counter that is to be counted here then. Who refuses when the store fails wants no other
// answer.
func wanted(c *algorithm.Counter, v *algorithm.Verdict) bool {
	return v.Err != nil && c.LocalShare > 0 && !c.Required
}

// standIn answers for the counters that the store behind could not answer for. When it refuses a call that other servers let pass, it
// returns what they charged.
func (l *local) standIn(ctx context.Context, counters []algorithm.Counter, charge bool, verdicts []algorithm.Verdict) (charged []algorithm.Charge) {
	var here []algorithm.Counter
	var places []int
	passes := true
	for i := range counters {
		c, v := &counters[i], &verdicts[i]
		switch {
		case v.Ended != nil: // nobody is left to be answered
			return nil
		case wanted(c, v):
			places = append(places, i)
			here = append(here, l.counter(c))
		default:
			passes = passes && !c.Refuses(v)
		}
	}
	if len(here) == 0 {
		return nil
	}
	for i := range here { // a ban watches those that are here, too
		here[i].Watched = here[i].WatchedIn(places)
	}
	answers := make([]algorithm.Verdict, len(here))
	l.store().Decide(ctx, here, charge && passes, answers)
	for n, i := range places {
		answers[n].From, answers[n].Instead = algorithm.FromLocal, verdicts[i].Err
		verdicts[i] = answers[n]
	}
	if !charge || !passes || algorithm.Passes(here, answers) {
		return nil
	}
	for i := range counters {
		if c := counters[i].Charged(&verdicts[i]); c.Cost > 0 && verdicts[i].From != algorithm.FromLocal {
			c.Key = append([]byte(nil), c.Key...)
			charged = append(charged, c)
			verdicts[i].Remaining += c.Cost
		}
	}
	return charged
}

// counter is what a counter of the call is here. What costs more than the share can hold takes all of it.
func (l *local) counter(c *algorithm.Counter) algorithm.Counter {
	here := *c
	here.Lease = 0
	if c.Limit.Kind != algorithm.Ban {
		here.Limit = l.of(c.Limit, c.LocalShare)
		here.Cost = min(c.Cost, here.Limit.Max)
	}
	return here
}

// split tells charges that were made here from the others.
func (l *local) split(charges []algorithm.Charge) (here, behind []algorithm.Charge) {
	for _, c := range charges {
		if c.LocalShare == 0 {
			behind = append(behind, c)
			continue
		}
		c.Limit = l.of(c.Limit, c.LocalShare)
		here = append(here, c)
	}
	return here, behind
}

// anyHere says whether some of these charges were made here; nearly always none was.
func anyHere(charges []algorithm.Charge) bool {
	for i := range charges {
		if charges[i].LocalShare != 0 {
			return true
		}
	}
	return false
}
