package redisstore

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
)

// decideOnShards decides over counters that lie on several shards. It asks them side by side, and
// gives back what was charged if the answer as a whole is a refusal.
//
// Until a charge is given back, its permits are missing to everybody who shares the counter. So a
// shard that will probably refuse is asked first, while the others are only looked at. They are
// charged after it has let the call pass. That takes one trip more for a call that passes then, and
// no more for one that is refused.
//
// ctx is the caller's context, or one derived from it that ends earlier.
func (s *Store) decideOnShards(caller, ctx context.Context, counters []algorithm.Counter, charge bool, verdicts []algorithm.Verdict) {
	parts := splitByTag(counters)
	var doubtful *shardPart
	if charge {
		doubtful = s.findDoubtful(parts)
	}
	if doubtful != nil {
		s.decideDoubtfulFirst(caller, ctx, doubtful, parts)
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

// decideParts asks the shards of these parts side by side.
func (s *Store) decideParts(caller, ctx context.Context, parts []*shardPart, charge bool) {
	sideBySide(len(parts), func(i int) {
		p := parts[i]
		p.charging = charge
		p.forgetOverrides()
		s.decideOnShard(caller, ctx, s.newRequest(p.counters, charge, 1), p.verdicts)
	})
}

// sideBySide runs a function n times concurrently, one of them in this goroutine.
func sideBySide(n int, do func(i int)) {
	var others sync.WaitGroup
	for i := 1; i < n; i++ {
		others.Go(func() { do(i) })
	}
	if n > 0 {
		do(0)
	}
	others.Wait()
}

// decideDoubtfulFirst charges one part first, and the others when it has let the call pass. It does
// not wait longer than a quarter of the call's time: the first shard may be unhealthy, and the
// others have to be asked in time.
func (s *Store) decideDoubtfulFirst(caller, ctx context.Context, first *shardPart, parts []*shardPart) {
	start, answered := time.Now(), make(chan struct{})
	go func() {
		defer close(answered)
		s.decideParts(caller, ctx, []*shardPart{first}, true)
	}()
	soon, cancelLook := context.WithDeadline(ctx, start.Add(s.timeout/4))
	defer cancelLook()
	others := slices.DeleteFunc(slices.Clone(parts), func(p *shardPart) bool { return p == first })
	s.decideParts(caller, soon, others, false)
	refused := slices.ContainsFunc(others, func(p *shardPart) bool { return !p.failed() && p.refuses() })
	select {
	case <-answered:
		refused = refused || first.refuses()
	case <-soon.Done():
	}
	if refused {
		// No other part is charged, but a ban that watches a counter which refused has to count
		// the refusal.
		others = slices.DeleteFunc(others, func(p *shardPart) bool { return !p.hasStrike() })
	}
	rest, cancel := context.WithDeadline(ctx, start.Add(s.timeout))
	defer cancel()
	s.decideParts(caller, rest, others, true)
	<-answered
}

// giveBackParts gives back the charges of a refused call, and changes the verdicts to those without
// these charges.
func (s *Store) giveBackParts(parts []*shardPart, verdicts []algorithm.Verdict) {
	for _, p := range parts {
		if charges := p.charges(); len(charges) > 0 {
			// This is best effort. A charge that cannot be given back costs that caller the permit,
			// and admits nobody.
			s.giveBack(charges)
			p.showGivenBack(verdicts)
		}
	}
}

// splitCharges splits charges by hash tag.
func splitCharges(charges []algorithm.Charge) (parts [][]algorithm.Charge) {
	indexes := make(map[string]int)
	for _, c := range charges {
		i, ok := indexes[string(hashTag(c.Key))]
		if !ok {
			i = len(parts)
			indexes[string(hashTag(c.Key))] = i
			parts = append(parts, nil)
		}
		parts[i] = append(parts[i], c)
	}
	return parts
}
