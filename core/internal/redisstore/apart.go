package redisstore

import (
	"context"
	"sync"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
)

// part is the counters of one call that lie together, and where they stand in the call.
type part struct {
	places   []int
	counters []algorithm.Counter
	verdicts []algorithm.Verdict
}

// decideApart decides over counters that lie on several shards: it asks them side by side, and gives back what was charged
// when the answer as a whole is no.
func (s *Store) decideApart(ctx context.Context, counters []algorithm.Counter, charge bool, verdicts []algorithm.Verdict) {
	parts := split(counters)
	var asked sync.WaitGroup
	for _, p := range parts {
		asked.Go(func() { s.decide(ctx, p.counters, charge, p.verdicts) })
	}
	asked.Wait()

	allowed := true
	for _, p := range parts {
		for i, place := range p.places {
			verdicts[place] = p.verdicts[i]
		}
		allowed = allowed && !p.refuses()
	}
	if allowed || !charge {
		return
	}
	for _, p := range parts {
		if charges := p.charges(); len(charges) > 0 {
			// Best effort: what cannot be given back costs that caller the permit, and admits nobody.
			s.InBackground(func() {
				_ = s.GiveBack(context.Background(), charges)
				s.hear(charges)
			})
			p.uncharge(verdicts)
		}
	}
}

// split sorts the counters by tag, keeping their order, with copies of the keys: giving back outlives the call.
func split(counters []algorithm.Counter) (parts []*part) {
	byTag := make(map[string]*part)
	for i, c := range counters {
		p, ok := byTag[string(tag(c.Key))]
		if !ok {
			p = new(part)
			byTag[string(tag(c.Key))] = p
			parts = append(parts, p)
		}
		c.Key = append([]byte(nil), c.Key...)
		p.places = append(p.places, i)
		p.counters = append(p.counters, c)
		p.verdicts = append(p.verdicts, algorithm.Verdict{})
	}
	return parts
}

// together sorts charges by the scripts that can reach them.
func (s *Store) together(charges []algorithm.Charge) (parts [][]algorithm.Charge) {
	if !s.router.apart() {
		return [][]algorithm.Charge{charges}
	}
	places := make(map[string]int)
	for _, c := range charges {
		at, ok := places[string(tag(c.Key))]
		if !ok {
			at = len(parts)
			places[string(tag(c.Key))] = at
			parts = append(parts, nil)
		}
		parts[at] = append(parts[at], c)
	}
	return parts
}

// charges are what this part's shard charged: nothing, unless it let the call pass.
func (p *part) charges() (charges []algorithm.Charge) {
	for i := range p.verdicts {
		if p.verdicts[i].Err != nil || p.verdicts[i].Ended != nil {
			return nil
		}
	}
	if !algorithm.Passes(p.counters, p.verdicts) {
		return nil
	}
	for i := range p.counters {
		if c := p.counters[i].Charged(&p.verdicts[i]); c.Cost > 0 {
			charges = append(charges, c)
		}
	}
	return charges
}

// refuses says whether this part makes the whole call a refused one.
func (p *part) refuses() bool {
	for i := range p.verdicts {
		if p.verdicts[i].Ended != nil {
			return true
		}
	}
	return !algorithm.Passes(p.counters, p.verdicts)
}

// uncharge shows the permits as they will be once given back.
func (p *part) uncharge(verdicts []algorithm.Verdict) {
	for i, place := range p.places {
		if charge := p.counters[i].Charged(&p.verdicts[i]); charge.Cost > 0 {
			verdicts[place].Remaining += charge.Cost
		}
	}
}
