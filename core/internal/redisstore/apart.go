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
	at       int64 // when they were charged, by their server's clock; 0: they were not
}

// decideApart decides over counters that lie on several shards: it asks them side by side, and gives back what was charged
// when the answer as a whole is no.
func (s *Store) decideApart(deadline, caller context.Context, counters []algorithm.Counter, charge bool, verdicts []algorithm.Verdict) {
	parts := split(counters)
	var asked sync.WaitGroup
	for _, p := range parts {
		asked.Go(func() { p.at = s.decide(deadline, caller, p.counters, charge, p.verdicts) })
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
		if p.at != 0 && p.fits() {
			s.inBackground(func() { s.giveBack(p) })
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

// fits says whether this part's shard let the call pass, and so charged it.
func (p *part) fits() bool {
	for i := range p.verdicts {
		if v := &p.verdicts[i]; v.Err != nil || v.Ended != nil || v.RetryAfter > 0 {
			return false
		}
	}
	return true
}

// refuses says whether this part makes the whole call a refused one.
func (p *part) refuses() bool {
	for i, v := range p.verdicts {
		if v.RetryAfter > 0 || v.Ended != nil || v.Err != nil && p.counters[i].Required {
			return true
		}
	}
	return false
}

// uncharge shows the permits as they will be once given back.
func (p *part) uncharge(verdicts []algorithm.Verdict) {
	for i, place := range p.places {
		verdicts[place].Remaining += p.counters[i].Cost
	}
}

// giveBack is best effort: what it cannot give back costs that caller the permit, and admits nobody.
func (s *Store) giveBack(p *part) {
	ctx, cancel := context.WithTimeout(context.Background(), s.timeout)
	defer cancel()
	_, _ = s.run(ctx, &algorithm.GiveBack, p.counters, p.at)
}
