package memstore

import (
	"errors"
	"slices"
	"strings"
	"sync"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
)

// ErrTooManyOverrides is the error if there is no room for another override.
var ErrTooManyOverrides = errors.New("there are too many overrides in this process")

// overrides holds what operators set for single subjects, apart from the counters. They are never
// evicted, because operators set them. Its zero value is empty.
type overrides struct {
	mu     sync.RWMutex
	byKey  map[string]*NamedOverride
	byName map[string][]*NamedOverride // the overrides of each name, by subject, so that listing delays no call
}

// NamedOverride is an override of a subject under a name.
type NamedOverride struct {
	Name, Subject string
	algorithm.Override
}

// SetOverride stores an override under its key, in place of an earlier one, which it returns. The
// process holds at most most overrides of all names together.
func (s *Store) SetOverride(key []byte, o NamedOverride, most int) (before NamedOverride, existed bool, err error) {
	now := s.epochNow()
	s.overrides.mu.Lock()
	defer s.overrides.mu.Unlock()
	before, existed = s.overrides.get(key, now)
	if len(s.overrides.byKey) >= most {
		s.overrides.dropEnded(now)
	}
	if !existed && len(s.overrides.byKey) >= most {
		return before, false, ErrTooManyOverrides
	}
	s.overrides.put(string(key), &o)
	return before, existed, nil
}

// Override returns the override with a key, if there is one that has not ended.
func (s *Store) Override(key []byte) (o NamedOverride, ok bool) {
	s.overrides.mu.RLock()
	defer s.overrides.mu.RUnlock()
	return s.overrides.get(key, s.epochNow())
}

// RemoveOverride removes the override with a key, and returns it if it had not ended.
func (s *Store) RemoveOverride(key []byte) (before NamedOverride, existed bool) {
	s.overrides.mu.Lock()
	defer s.overrides.mu.Unlock()
	before, existed = s.overrides.get(key, s.epochNow())
	if gone := s.overrides.byKey[string(key)]; gone != nil {
		delete(s.overrides.byKey, string(key))
		s.overrides.unlist(gone)
	}
	return before, existed
}

// Overrides returns up to n overrides of a name in the order of their subjects, starting behind the
// subject after.
func (s *Store) Overrides(name, after string, n int) (page []NamedOverride) {
	now := s.epochNow()
	s.overrides.mu.RLock()
	defer s.overrides.mu.RUnlock()
	named := s.overrides.byName[name]
	at, found := find(named, after)
	if found {
		at++
	}
	for ; at < len(named) && len(page) < n; at++ {
		if !named[at].ended(now) {
			page = append(page, *named[at])
		}
	}
	return page
}

// find returns the index of a subject among the overrides of a name, and whether it has one.
func find(named []*NamedOverride, subject string) (at int, found bool) {
	return slices.BinarySearchFunc(named, subject, func(o *NamedOverride, subject string) int { return strings.Compare(o.Subject, subject) })
}

// put stores an override under its key. The overrides must be locked.
func (o *overrides) put(key string, put *NamedOverride) {
	if o.byKey == nil {
		o.byKey, o.byName = make(map[string]*NamedOverride), make(map[string][]*NamedOverride)
	}
	o.byKey[key] = put
	named := o.byName[put.Name]
	if at, found := find(named, put.Subject); found {
		named[at] = put
	} else {
		o.byName[put.Name] = slices.Insert(named, at, put)
	}
}

// unlist removes an override from the list of its name. The overrides must be locked.
func (o *overrides) unlist(gone *NamedOverride) {
	named := o.byName[gone.Name]
	if at, found := find(named, gone.Subject); found {
		o.setList(gone.Name, slices.Delete(named, at, at+1))
	}
}

// setList replaces the list of a name. The overrides must be locked.
func (o *overrides) setList(name string, named []*NamedOverride) {
	if len(named) == 0 {
		delete(o.byName, name)
	} else {
		o.byName[name] = named
	}
}

// get returns the override with a key, unless it has ended. The overrides must be locked.
func (o *overrides) get(key []byte, now int64) (found NamedOverride, ok bool) {
	of := o.byKey[string(key)]
	if of == nil || of.ended(now) {
		return NamedOverride{}, false
	}
	return *of, true
}

func (o *NamedOverride) ended(now int64) bool { return o.Ends > 0 && o.Ends <= now }

// dropEnded removes the overrides that have ended. The overrides must be locked.
func (o *overrides) dropEnded(now int64) {
	for key, of := range o.byKey {
		if of.ended(now) {
			delete(o.byKey, key)
		}
	}
	for name, named := range o.byName {
		o.setList(name, slices.DeleteFunc(named, func(of *NamedOverride) bool { return of.ended(now) }))
	}
}

// answer fills in what was set for the subjects of a call.
func (o *overrides) answer(queries []*algorithm.OverrideQuery, now int64) {
	o.mu.RLock()
	defer o.mu.RUnlock()
	for _, q := range queries {
		if found, ok := o.get(q.Key, now); ok {
			q.Answer(found.FoundBy(q.Limit))
		}
	}
}

// epochNow returns the time in microseconds since the epoch.
func (s *Store) epochNow() int64 {
	if s.clock != nil {
		return s.clock()
	}
	return s.sinceEpoch(s.arrival())
}

// remainder is what overrides leave of a call's counters to decide.
type remainder struct {
	counters []algorithm.Counter
	indexes  []int // in the call
	verdicts []algorithm.Verdict
}

// overrule answers for the counters that an override takes out of the decision, and returns the
// others.
func (s *Store) overrule(counters []algorithm.Counter, request algorithm.Request, verdicts []algorithm.Verdict) (r remainder) {
	now := s.epochNow()
	var room [4]*algorithm.OverrideQuery
	s.overrides.answer(algorithm.AppendQueries(room[:0], counters), now)
	applied := algorithm.ApplyOverrides(counters, request)
	for i := range counters {
		if applied.Decides(counters, i) {
			r.counters, r.indexes = append(r.counters, counters[i]), append(r.indexes, i)
		} else {
			verdicts[i] = applied.Answer(&counters[i], now)
		}
	}
	for i := range r.counters {
		r.counters[i].Watched = r.counters[i].WatchedIn(r.indexes)
	}
	r.verdicts = make([]algorithm.Verdict, len(r.counters))
	return r
}

// report stores the verdicts and the costs of the remainder in those of the call.
func (r *remainder) report(counters []algorithm.Counter, verdicts []algorithm.Verdict) {
	for n, i := range r.indexes {
		verdicts[i], counters[i].Cost = r.verdicts[n], r.counters[n].Cost
	}
}

// decideOverridden decides counters of which some may have an override. It skips those that an
// override takes out of the decision.
func (s *Store) decideOverridden(counters []algorithm.Counter, charge bool, request algorithm.Request, verdicts []algorithm.Verdict) {
	r := s.overrule(counters, request, verdicts)
	switch {
	case len(r.counters) == 0:
		if request == algorithm.ToChargeUp && !algorithm.Passes(counters, verdicts) {
			algorithm.SetCost(counters, 1)
		}
	case len(r.counters) == 1 && request == algorithm.ToDecide:
		s.DecideOne(&r.counters[0], charge, &r.verdicts[0])
	default:
		s.decideTogether(r.counters, charge, request == algorithm.ToChargeUp, s.arrival(), r.verdicts)
	}
	r.report(counters, verdicts)
}

// rule applies the override of a reservation, and returns the verdict if the override decides it.
func (s *Store) rule(c *algorithm.Counter) (v algorithm.Verdict, decided bool) {
	counters, now := [...]algorithm.Counter{*c}, s.epochNow()
	s.overrides.answer([]*algorithm.OverrideQuery{c.Override}, now)
	applied := algorithm.ApplyOverrides(counters[:], algorithm.ToReserve)
	c.Limit = counters[0].Limit
	if applied.Decides(counters[:], 0) {
		return v, false
	}
	return applied.Answer(c, now), true
}
