package redisstore

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
	"github.com/accesslimit/accesslimit/core/internal/panics"
)

// decideOnShards decides counters that lie on several shards. It asks them at the same time, and
// gives back what was charged if the call is refused as a whole.
//
// Until a charge is given back, its permits are unavailable to everyone who shares the counter. So
// a shard that will probably refuse is charged first, while the others are only looked at. They are
// charged once it has let the call pass. That takes one more trip for a call that passes, and none
// for one that is refused. When all shards were charged at the same time, 64 goroutines of callers
// without permits made a limit that all callers share refuse 22 to 28 of 60 other calls, and still 1 to 6
// behind a deny cache (TestPromises, "hammering beside others"). Looking at all shards first would double the
// time of each call.
//
// The counters of soft rules on shards of their own are asked last, when it is known whether the call passes.
//
// ctx is the caller's context, or one derived from it that ends earlier.
func (s *Store) decideOnShards(caller, ctx context.Context, op *algorithm.Op) {
	start, parts, charge, verdicts := time.Now(), splitByTag(op.Counters), op.Charges(), op.Verdicts
	behind := partsWhere(parts, (*shardPart).isBehind)
	if first := partsWhere(parts, func(p *shardPart) bool { return !p.isBehind() }); charge && len(first) > 0 {
		s.chargeParts(caller, ctx, start, first)
		s.askRest(caller, ctx, start, behind, !slices.ContainsFunc(first, (*shardPart).refuses))
	} else {
		s.decideParts(caller, ctx, parts, charge)
	}
	for n, p := range parts {
		p.copyVerdicts(verdicts, uint8(n))
		if charge {
			s.forecasts.record(p.hash, p.counters, p.verdicts)
		}
	}
	if charge && slices.ContainsFunc(parts, (*shardPart).refuses) {
		s.giveBackParts(parts, verdicts)
	}
}

// chargeParts charges all parts of a call that began at start, unless one of them refuses it.
func (s *Store) chargeParts(caller, ctx context.Context, start time.Time, parts []*shardPart) {
	if likelyRefuser := s.findLikelyRefuser(parts); likelyRefuser != nil {
		s.decideLikelyRefuserFirst(caller, ctx, start, likelyRefuser, parts)
	} else {
		s.decideParts(caller, ctx, parts, true)
	}
	if !slices.ContainsFunc(parts, (*shardPart).refuses) { // a shard that refused may let the call pass by now
		s.askRest(caller, ctx, start, partsWhere(parts, (*shardPart).wasLookedAt), true)
	}
}

// askRest asks some parts of a call that began at start, within the call's time.
func (s *Store) askRest(caller, ctx context.Context, start time.Time, parts []*shardPart, charge bool) {
	if len(parts) > 0 {
		rest, cancel := context.WithDeadline(ctx, start.Add(s.timeout))
		defer cancel()
		s.decideParts(caller, rest, parts, charge)
	}
}

// decideParts asks the shards of these parts at the same time.
func (s *Store) decideParts(caller, ctx context.Context, parts []*shardPart, charge bool) {
	failed := s.sideBySide(len(parts), func(i int) error {
		p := parts[i]
		p.looked = !charge
		op := algorithm.Op{Mode: algorithm.Looks, Counters: p.counters, Calls: 1}
		if charge {
			op.Mode = algorithm.AllOrNone
		}
		s.decideOnShard(caller, ctx, s.newRequest(op), p.verdicts)
		return nil
	})
	for i, err := range failed {
		if err != nil {
			s.failVerdicts(caller, err, parts[i].verdicts)
		}
	}
}

// sideBySide runs a function n times concurrently, one of them in this goroutine. It returns their
// errors, with panics among them.
func (s *Store) sideBySide(n int, do func(i int) error) (failed []error) {
	failed = make([]error, n)
	run := func(i int) { failed[i] = s.call(func() error { return do(i) }) }
	var others sync.WaitGroup
	for i := 1; i < n; i++ {
		others.Go(panics.Guard(func() { run(i) }, s.reportPanic))
	}
	if n > 0 {
		run(0)
	}
	others.Wait()
	return failed
}

// decideLikelyRefuserFirst charges one part first, and the others once it has let the call pass. It
// waits for at most a quarter of the call's time, because the first shard may be unhealthy, and the
// others must be asked in time.
func (s *Store) decideLikelyRefuserFirst(caller, ctx context.Context, start time.Time, first *shardPart, parts []*shardPart) {
	answered := make(chan struct{})
	go panics.Guard(func() {
		defer close(answered)
		s.decideParts(caller, ctx, []*shardPart{first}, true)
	}, s.reportPanic)()
	soon, cancelLook := context.WithDeadline(ctx, start.Add(s.timeout/4))
	defer cancelLook()
	others := partsWhere(parts, func(p *shardPart) bool { return p != first })
	s.decideParts(caller, soon, others, false)
	refused := slices.ContainsFunc(others, func(p *shardPart) bool { return !p.failed() && p.refuses() })
	select {
	case <-answered:
		refused = refused || first.refuses()
	case <-soon.Done():
	}
	if !refused { // otherwise no other part is charged
		s.askRest(caller, ctx, start, others, true)
	}
	<-answered
}

// giveBackParts gives back the charges of a refused call, and changes the verdicts accordingly.
func (s *Store) giveBackParts(parts []*shardPart, verdicts []algorithm.Verdict) {
	for _, p := range parts {
		if charges := p.charges(); len(charges) > 0 {
			// This is best effort. A charge that cannot be given back costs the caller a permit,
			// but never admits a call.
			s.giveBack(charges)
			p.showGivenBack(verdicts)
		}
	}
}

// splitByKey splits a change by the hash tags of its keys.
func splitByKey(c *algorithm.Change) (parts []algorithm.Change) {
	if c.Key != nil {
		return []algorithm.Change{*c}
	}
	indexes := make(map[string]int)
	for _, charge := range c.Charges {
		i, ok := indexes[string(hashTag(charge.Key))]
		if !ok {
			i = len(parts)
			indexes[string(hashTag(charge.Key))] = i
			parts = append(parts, *c)
			parts[i].Charges = nil
		}
		parts[i].Charges = append(parts[i].Charges, charge)
	}
	return parts
}
