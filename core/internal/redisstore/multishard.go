package redisstore

import (
	"bytes"
	"context"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
)

// part is the counters of one call that lie together, and where they stand in the call.
type shardPart struct {
	hash     uint64
	indexes  []int
	counters []algorithm.Counter
	verdicts []algorithm.Verdict
	forecast forecast
	charging bool // it was asked to charge, and not only looked at
}

// decideApart decides over counters that lie on several shards. It asks them side by side, and
// gives back what was charged when the answer as a whole is no.
//
// Until a charge is given back, its permits are missing to everybody who shares the counter. So a
// shard that will probably refuse is asked first, while the others are only looked at; they are
// charged when it has let the call pass. That is one trip more for a call that passes then, and
// none for one that is refused.
func (s *Store) decideOnShards(ctx context.Context, counters []algorithm.Counter, charge bool, verdicts []algorithm.Verdict) {
	parts := splitByTag(counters)
	var doubtful *shardPart
	if charge {
		doubtful = s.findDoubtful(parts)
	}
	if doubtful != nil {
		s.decideDoubtfulFirst(ctx, doubtful, parts)
	} else {
		s.decideParts(ctx, ctx, parts, charge)
	}
	for n, p := range parts {
		for i, place := range p.indexes {
			verdicts[place] = p.verdicts[i]
			verdicts[place].Part = uint8(n)
		}
		if charge {
			s.forecasts.record(p.hash, p.counters, p.verdicts)
		}
	}
	if charge && slices.ContainsFunc(parts, (*shardPart).refuses) {
		s.giveBackParts(parts, verdicts)
	}
}

// askParts asks the shards of these parts side by side.
func (s *Store) decideParts(caller, ctx context.Context, parts []*shardPart, charge bool) {
	var others sync.WaitGroup
	ask := func(p *shardPart) {
		p.charging = charge
		s.decideOnShard(caller, ctx, p.counters, charge, p.verdicts)
	}
	for i := 1; i < len(parts); i++ {
		others.Go(func() { ask(parts[i]) })
	}
	if len(parts) > 0 {
		ask(parts[0])
	}
	others.Wait()
}

// askFirst charges one part first, and the others when it has let the call pass. It does not wait
// longer than a quarter of the call's time: the first shard may be unhealthy, and the others have
// to be asked in time.
func (s *Store) decideDoubtfulFirst(ctx context.Context, first *shardPart, parts []*shardPart) {
	begun, answered := time.Now(), make(chan struct{})
	go func() {
		defer close(answered)
		s.decideParts(ctx, ctx, []*shardPart{first}, true)
	}()
	soon, enough := context.WithDeadline(ctx, begun.Add(s.timeout/4))
	defer enough()
	others := slices.DeleteFunc(slices.Clone(parts), func(p *shardPart) bool { return p == first })
	s.decideParts(ctx, soon, others, false)
	refused := slices.ContainsFunc(others, func(p *shardPart) bool { return !p.failed() && p.refuses() })
	select {
	case <-answered:
		refused = refused || first.refuses()
	case <-soon.Done():
	}
	if refused { // no other part is charged, but a ban that watches a counter which refused has to count the refusal
		others = slices.DeleteFunc(others, func(p *shardPart) bool { return !p.hasStrike() })
	}
	rest, cancel := context.WithDeadline(ctx, begun.Add(s.timeout))
	defer cancel()
	s.decideParts(ctx, rest, others, true)
	<-answered
}

// doubtful returns the part that will probably refuse the call, or nil if all will probably let it
// pass.
func (s *Store) findDoubtful(parts []*shardPart) *shardPart {
	now := time.Since(s.forecasts.start)
	for _, p := range parts {
		p.hash = s.hashKeys(p.counters)
		for i := range p.counters {
			p.hash = p.hash*31 + uint64(p.counters[i].Cost)
		}
		p.forecast = s.forecasts.lookup(p.hash, now, s.timeout)
	}
	if p := mostDoubtful(parts); p != nil {
		return p
	}
	for _, p := range parts {
		if p.forecast.until > 0 {
			p.forecast = s.forecasts.expectPass(p.hash)
		}
	}
	return mostDoubtful(parts)
}

// mostDoubtful returns the part that refused a call before; of several, the one that will do so
// longest. If there is none, it returns a part that is used up, or that was asked for the first
// time and has not answered yet. Of several, that is the one with the smallest limit, which is most
// likely one caller's own.
func mostDoubtful(parts []*shardPart) (first *shardPart) {
	for _, p := range parts {
		if p.forecast.expectsRefusal() && (first == nil || p.isMoreDoubtful(first)) {
			first = p
		}
	}
	return first
}

func (p *shardPart) isMoreDoubtful(than *shardPart) bool {
	a, b := &p.forecast, &than.forecast
	switch {
	case a.refused != b.refused:
		return a.refused
	case a.refused:
		return a.until > b.until
	default:
		return p.smallestMax() < than.smallestMax()
	}
}

// smallest returns the smallest limit of the part.
func (p *shardPart) smallestMax() int64 {
	smallest := int64(math.MaxInt64)
	for i := range p.counters {
		if c := &p.counters[i]; c.Charges() {
			smallest = min(smallest, c.Limit.Max)
		}
	}
	return smallest
}

// giveBackApart gives back the charges of a refused call, and changes the verdicts to those without
// these charges.
func (s *Store) giveBackParts(parts []*shardPart, verdicts []algorithm.Verdict) {
	for _, p := range parts {
		if charges := p.charges(); len(charges) > 0 {
			// Best effort: what cannot be given back costs that caller the permit, and admits
			// nobody.
			s.giveBack(charges)
			p.showGivenBack(verdicts)
		}
	}
}

// split sorts the counters by tag, keeping their order.
func splitByTag(counters []algorithm.Counter) (parts []*shardPart) {
	for i := range counters {
		p := partWithTag(parts, hashTag(counters[i].Key))
		if p == nil {
			p = new(shardPart)
			parts = append(parts, p)
		}
		p.indexes = append(p.indexes, i)
		p.counters = append(p.counters, counters[i])
		p.verdicts = append(p.verdicts, algorithm.Verdict{})
	}
	for _, p := range parts {
		for i := range p.counters {
			p.counters[i].Watched = p.counters[i].WatchedIn(p.indexes)
		}
	}
	return parts
}

// with returns the part whose keys have this tag, or nil.
func partWithTag(parts []*shardPart, of []byte) *shardPart {
	for _, p := range parts {
		if bytes.Equal(hashTag(p.counters[0].Key), of) {
			return p
		}
	}
	return nil
}

// together sorts charges by the scripts that can reach them.
func (s *Store) splitCharges(charges []algorithm.Charge) (parts [][]algorithm.Charge) {
	if !s.router.isSharded() {
		return [][]algorithm.Charge{charges}
	}
	places := make(map[string]int)
	for _, c := range charges {
		at, ok := places[string(hashTag(c.Key))]
		if !ok {
			at = len(parts)
			places[string(hashTag(c.Key))] = at
			parts = append(parts, nil)
		}
		parts[at] = append(parts[at], c)
	}
	return parts
}

// charges returns what this part's shard charged: nothing, unless it let the call pass. The charges
// have keys of their own, because giving back outlives the call.
func (p *shardPart) charges() (charges []algorithm.Charge) {
	if !p.charging || p.refuses() || p.failed() {
		return nil
	}
	for i := range p.counters {
		if c := p.counters[i].Charged(&p.verdicts[i]); c.Cost > 0 {
			c.Key = bytes.Clone(c.Key)
			charges = append(charges, c)
		}
	}
	return charges
}

// failed reports whether the shard did not answer.
func (p *shardPart) failed() bool { return p.verdicts[0].Err != nil || p.verdicts[0].Ended != nil }

// refuses reports whether this part makes the whole call a refused one.
func (p *shardPart) refuses() bool {
	return p.verdicts[0].Ended != nil || !algorithm.Passes(p.counters, p.verdicts)
}

// strikes reports whether a ban has to count a refusal by this part.
func (p *shardPart) hasStrike() bool {
	for i := range p.counters {
		if algorithm.Struck(p.counters, p.verdicts, i) {
			return true
		}
	}
	return false
}

// uncharge shows the permits as they will be once given back.
func (p *shardPart) showGivenBack(verdicts []algorithm.Verdict) {
	for i, place := range p.indexes {
		if charge := p.counters[i].Charged(&p.verdicts[i]); charge.Cost > 0 {
			verdicts[place].Remaining += charge.Cost
		}
	}
}
