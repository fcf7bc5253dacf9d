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
type part struct {
	hash     uint64
	places   []int
	counters []algorithm.Counter
	verdicts []algorithm.Verdict
	expected forecast
	charge   bool // it was asked to charge, and not only looked at
}

// decideApart decides over counters that lie on several shards. It asks them side by side, and
// gives back what was charged when the answer as a whole is no.
//
// Until a charge is given back, its permits are missing to everybody who shares the counter. So a
// shard that will probably refuse is asked first, while the others are only looked at; they are
// charged when it has let the call pass. That is one trip more for a call that passes then, and
// none for one that is refused.
func (s *Store) decideApart(ctx context.Context, counters []algorithm.Counter, charge bool, verdicts []algorithm.Verdict) {
	parts := split(counters)
	var doubtful *part
	if charge {
		doubtful = s.doubtful(parts)
	}
	if doubtful != nil {
		s.askFirst(ctx, doubtful, parts)
	} else {
		s.askParts(ctx, ctx, parts, charge)
	}
	for n, p := range parts {
		for i, place := range p.places {
			verdicts[place] = p.verdicts[i]
			verdicts[place].Part = uint8(n)
		}
		if charge {
			s.outlook.learn(p.hash, p.counters, p.verdicts)
		}
	}
	if charge && slices.ContainsFunc(parts, (*part).refuses) {
		s.giveBackApart(parts, verdicts)
	}
}

// askParts asks the shards of these parts side by side.
func (s *Store) askParts(caller, ctx context.Context, parts []*part, charge bool) {
	var others sync.WaitGroup
	ask := func(p *part) {
		p.charge = charge
		s.decide(caller, ctx, p.counters, charge, p.verdicts)
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
func (s *Store) askFirst(ctx context.Context, first *part, parts []*part) {
	begun, answered := time.Now(), make(chan struct{})
	go func() {
		defer close(answered)
		s.askParts(ctx, ctx, []*part{first}, true)
	}()
	soon, enough := context.WithDeadline(ctx, begun.Add(s.timeout/4))
	defer enough()
	others := slices.DeleteFunc(slices.Clone(parts), func(p *part) bool { return p == first })
	s.askParts(ctx, soon, others, false)
	refused := slices.ContainsFunc(others, func(p *part) bool { return !p.failed() && p.refuses() })
	select {
	case <-answered:
		refused = refused || first.refuses()
	case <-soon.Done():
	}
	if refused { // no other part is charged, but a ban that watches a counter which refused has to count the refusal
		others = slices.DeleteFunc(others, func(p *part) bool { return !p.strikes() })
	}
	rest, cancel := context.WithDeadline(ctx, begun.Add(s.timeout))
	defer cancel()
	s.askParts(ctx, rest, others, true)
	<-answered
}

// doubtful returns the part that will probably refuse the call, or nil if all will probably let it
// pass.
func (s *Store) doubtful(parts []*part) *part {
	now := time.Since(s.outlook.begun)
	for _, p := range parts {
		p.hash = s.hash(p.counters)
		for i := range p.counters {
			p.hash = p.hash*31 + uint64(p.counters[i].Cost)
		}
		p.expected = s.outlook.of(p.hash, now, s.timeout)
	}
	if p := mostDoubtful(parts); p != nil {
		return p
	}
	for _, p := range parts {
		if p.expected.until > 0 {
			p.expected = s.outlook.take(p.hash)
		}
	}
	return mostDoubtful(parts)
}

// mostDoubtful returns the part that refused a call before; of several, the one that will do so
// longest. If there is none, it returns a part that is used up, or that was asked for the first
// time and has not answered yet. Of several, that is the one with the smallest limit, which is most
// likely one caller's own.
func mostDoubtful(parts []*part) (first *part) {
	for _, p := range parts {
		if p.expected.doubts() && (first == nil || p.moreDoubtful(first)) {
			first = p
		}
	}
	return first
}

func (p *part) moreDoubtful(than *part) bool {
	a, b := &p.expected, &than.expected
	switch {
	case a.refused != b.refused:
		return a.refused
	case a.refused:
		return a.until > b.until
	default:
		return p.smallest() < than.smallest()
	}
}

// smallest returns the smallest limit of the part.
func (p *part) smallest() int64 {
	smallest := int64(math.MaxInt64)
	for i := range p.counters {
		if l := p.counters[i].Limit; l.Kind != algorithm.Ban {
			smallest = min(smallest, l.Max)
		}
	}
	return smallest
}

// giveBackApart gives back the charges of a refused call, and changes the verdicts to those without
// these charges.
func (s *Store) giveBackApart(parts []*part, verdicts []algorithm.Verdict) {
	for _, p := range parts {
		if charges := p.charges(); len(charges) > 0 {
			// Best effort: what cannot be given back costs that caller the permit, and admits
			// nobody.
			s.giveBack(charges)
			p.uncharge(verdicts)
		}
	}
}

// split sorts the counters by tag, keeping their order.
func split(counters []algorithm.Counter) (parts []*part) {
	for i := range counters {
		p := with(parts, tag(counters[i].Key))
		if p == nil {
			p = new(part)
			parts = append(parts, p)
		}
		p.places = append(p.places, i)
		p.counters = append(p.counters, counters[i])
		p.verdicts = append(p.verdicts, algorithm.Verdict{})
	}
	for _, p := range parts {
		for i := range p.counters {
			p.counters[i].Watched = p.counters[i].WatchedIn(p.places)
		}
	}
	return parts
}

// with returns the part whose keys have this tag, or nil.
func with(parts []*part, of []byte) *part {
	for _, p := range parts {
		if bytes.Equal(tag(p.counters[0].Key), of) {
			return p
		}
	}
	return nil
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

// charges returns what this part's shard charged: nothing, unless it let the call pass. The charges
// have keys of their own, because giving back outlives the call.
func (p *part) charges() (charges []algorithm.Charge) {
	if !p.charge || p.refuses() || p.failed() {
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
func (p *part) failed() bool { return p.verdicts[0].Err != nil || p.verdicts[0].Ended != nil }

// refuses reports whether this part makes the whole call a refused one.
func (p *part) refuses() bool {
	return p.verdicts[0].Ended != nil || !algorithm.Passes(p.counters, p.verdicts)
}

// strikes reports whether a ban has to count a refusal by this part.
func (p *part) strikes() bool {
	for i := range p.counters {
		if algorithm.Struck(p.counters, p.verdicts, i) {
			return true
		}
	}
	return false
}

// uncharge shows the permits as they will be once given back.
func (p *part) uncharge(verdicts []algorithm.Verdict) {
	for i, place := range p.places {
		if charge := p.counters[i].Charged(&p.verdicts[i]); charge.Cost > 0 {
			verdicts[place].Remaining += charge.Cost
		}
	}
}
