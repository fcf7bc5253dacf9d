package algorithm_test

import (
	"cmp"
	"context"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
)

// tub models a bucket by a list of all charges. For each rate it holds the permits that calls at
// that rate and at slower ones were charged, and that were not given back, oldest first. The oldest
// of them come back first.
type tub struct {
	at    int64 // the tick at which it was written
	parts []tubPart
}

type tubPart struct {
	permit, refill, burst int64
	used                  int64 // units
	held                  []heldPermits
	lasts                 bool  // it has the rate that was the first
	own                   int64 // permits charged at this very rate, and not given back
}

// heldPermits are some permits of one charge.
type heldPermits struct{ charge, permits int64 }

// nobody is the holder of permits that a refund could not give back.
const nobody = -1

func (p *tubPart) is(l *algorithm.Limit) bool { return p.permit == l.Permit && p.refill == l.Refill }

// clone returns a copy of the tub, refilled up to a tick, and when everything is back.
func (b *tub) clone(at int64) (c tub, whole int64) {
	c.at = at
	for _, p := range b.parts {
		p.held = slices.Clone(p.held)
		whole = max(whole, (p.used+p.refill-1)/p.refill-max(0, at-b.at))
		p.used = max(0, p.used-max(0, at-b.at)*p.refill)
		c.parts = append(c.parts, p)
	}
	if whole == 0 {
		c.parts = nil
	}
	return c, whole
}

// copyOf returns a part of a limit's rate that holds what the fullest part does. If that is not the
// next slower one, it may lack what slower calls use, so nothing can be given back to the copy.
func (b *tub) copyOf(l *algorithm.Limit) tubPart {
	c := tubPart{permit: l.Permit, refill: l.Refill}
	from, next, slower := -1, -1, false
	for i, p := range b.parts {
		part := p.used % p.permit * l.Permit
		if units := p.used/p.permit*l.Permit + (part+p.permit-1)/p.permit; units > c.used {
			c.used, c.held, from = units, slices.Clone(p.held), i
		}
		if p.refill*l.Permit < l.Refill*p.permit {
			next, slower = i, slower || p.used > 0
		}
	}
	if slower && from != next {
		c.held = nil
	}
	return c
}

// seenBy returns the tub as a limit sees it, the place of the limit's own part, and when everything
// is back. A part that is new is as if it had been there since the tub was written.
func (b *tub) seenBy(l *algorithm.Limit, at int64) (seen tub, own int, whole int64) {
	_, whole = b.clone(at)
	if whole == 0 {
		return tub{at, []tubPart{{permit: l.Permit, refill: l.Refill, burst: l.Max, lasts: true}}}, 0, 0
	}
	seen, _ = b.clone(b.at)
	if !slices.ContainsFunc(seen.parts, func(p tubPart) bool { return p.is(l) }) {
		seen.parts = append(seen.parts, b.copyOf(l))
		slices.SortFunc(seen.parts, func(a, b tubPart) int { return cmp.Compare(a.refill*b.permit, b.refill*a.permit) })
	}
	seen, _ = seen.clone(at)
	own = slices.IndexFunc(seen.parts, func(p tubPart) bool { return p.is(l) })
	seen.parts[own].burst = l.Max
	return seen, own, whole
}

// answer decides a cost by the part of a limit and all faster ones. Each may be used up to the
// larger of its burst and the limit's.
func (b *tub) answer(l *algorithm.Limit, now, cost int64) (want algorithm.Verdict) {
	at := now / l.Tick
	seen, own, whole := b.seenBy(l, at)
	after := func(ticks int64) int64 {
		if ticks = min(ticks, whole); ticks == 0 {
			return 0
		}
		return (at+ticks)*l.Tick - now
	}
	want = algorithm.Verdict{At: now, Remaining: l.Max}
	var reset, retry int64
	for _, p := range seen.parts[own:] {
		full := max(l.Max, p.burst)
		want.Remaining = min(want.Remaining, max(0, full-(p.used+p.permit-1)/p.permit))
		reset = max(reset, (p.used+(l.Max-full)*p.permit+p.refill-1)/p.refill)
		retry = max(retry, (p.used+(cost-full)*p.permit+p.refill-1)/p.refill)
	}
	want.ResetAfter, want.RetryAfter = after(reset), after(retry)
	return want
}

func (b *tub) charge(l *algorithm.Limit, now, cost, id int64) {
	seen, own, _ := b.seenBy(l, now/l.Tick)
	for i := own; i < len(seen.parts); i++ {
		p := &seen.parts[i]
		p.used += cost * p.permit
		p.held = append(p.held, heldPermits{id, cost})
	}
	seen.parts[own].own += cost
	*b = seen
}

// refund gives back the newest permits of a charge that were not given back before. If no call at
// the charge's rate is left, its part goes.
func (b *tub) refund(l *algorithm.Limit, now, permits, id int64) {
	after, whole := b.clone(now / l.Tick)
	if whole == 0 {
		return
	}
	changed, burst := false, int64(0)
	for i := range after.parts {
		p := &after.parts[i]
		burst = max(burst, p.burst)
		given := p.refund(burst, permits, id)
		changed = changed || given > 0
		if p.is(l) {
			p.own -= given
		}
	}
	if !changed { // not even the refill is written
		for i := range b.parts {
			b.parts[i].held = after.parts[i].held
		}
		return
	}
	after.parts = slices.DeleteFunc(after.parts, func(p tubPart) bool { return !p.lasts && p.own == 0 })
	*b = after
}

// refund gives back permits of a part, where it and the slower ones had at most this burst. It
// returns how many are no longer held; some of them may have come back by themselves.
func (p *tubPart) refund(burst, permits, id int64) (given int64) {
	at := slices.IndexFunc(p.held, func(h heldPermits) bool { return h.charge == id })
	if at < 0 {
		return 0
	}
	behind := int64(0)
	for _, h := range p.held[at+1:] {
		behind += h.permits
	}
	given = permits
	if p.used > burst*p.permit {
		given = max(0, permits-behind)
	}
	back := max(0, min(p.used-behind*p.permit, given*p.permit))
	if back == 0 {
		given = 0
	}
	p.used -= back
	p.held[at].permits -= permits
	p.held = slices.Insert(p.held, at+1, heldPermits{nobody, permits - given})
	return given
}

// receipt is a charge of which some permits can still be given back.
type receipt struct {
	algorithm.Charge
	id, left int64
	limit    *algorithm.Limit
}

// sharing returns limits of one window, which all use one bucket.
func sharing(t testing.TB) (all []*algorithm.Limit) {
	for _, of := range [][2]int64{{10, 10}, {7, 7}, {7, 12}, {1000, 30}, {13, 5}} {
		all = append(all, new(bucket(t, of[0], second, of[1])))
	}
	return all
}

// On both engines, a bucket answers as the list does, to the microsecond, for any sequence of
// charges, refunds in one step or several, outcomes, reservations, changes of the limit and
// refills.
func TestBucketRefundsAreExact(t *testing.T) {
	s, limits := startServer(t), sharing(t)
	for name, several := range map[string]int{"one rate": 1, "several": len(limits)} {
		t.Run(name, rapid.MakeCheck(func(t *rapid.T) {
			e, b := newEngines(early), &tub{}
			key := []byte("bucket")
			var receipts []*receipt
			for id := range int64(rapid.IntRange(10, 60).Draw(t, "steps")) {
				e.now += upTo(t, 2*second, "passes") / rapid.SampledFrom([]int64{1, 100, 10_000}).Draw(t, "by")
				l := limits[rapid.IntRange(0, several-1).Draw(t, "limit")]
				counter := algorithm.Counter{Key: key, Limit: l, Cost: 1 + upTo(t, l.Max-1, "cost")}
				var v algorithm.Verdict
				switch do := rapid.IntRange(0, 9).Draw(t, "do"); {
				case do < 5:
					want := b.answer(l, e.now, counter.Cost)
					v = e.decide(true, e.now, []algorithm.Counter{counter})[0]
					if v.RetryAfter != want.RetryAfter {
						t.Fatalf("%s\nwant %+v", e.story(len(e.steps)-1), want)
					}
				case do == 5:
					v = e.reserve(counter, second)
				case len(receipts) > 0:
					at := rapid.IntRange(0, len(receipts)-1).Draw(t, "which")
					r := receipts[at]
					r.Cost = 1 + upTo(t, r.left-1, "so much")
					e.giveBack(r.Charge)
					b.refund(r.limit, e.now, r.Cost, r.id)
					r.Given, r.left = r.Given+r.Cost, r.left-r.Cost
					if r.left == 0 {
						receipts = slices.Delete(receipts, at, at+1)
					}
				}
				if v.At > 0 && v.RetryAfter == 0 {
					b.charge(l, e.now, counter.Cost, id)
					receipts = append(receipts, &receipt{counter.Charged(&v), id, counter.Cost, l})
				}
				for _, l := range limits[:several] {
					want := b.answer(l, e.now, 1)
					if got := e.decide(false, e.now, []algorithm.Counter{{Key: key, Limit: l, Cost: 1}})[0]; got != want {
						t.Fatalf("%s\nwant %+v", e.story(len(e.steps)-1), want)
					}
				}
			}
			e.run(t, s, timed, nil)
		}))
	}
}

// Up to 256 gaps, all that was charged can be given back, in any order. If there are more, the oldest
// are merged. Calls at the rate of the bucket can be given back there, too, but only as many as are
// known to count. Permits that may have counted still, and were not given back, are reported.
func TestBucketOfManyGaps(t *testing.T) {
	s := startServer(t)
	for _, tc := range []struct {
		name        string
		calls, rate int64
		lost        bool
	}{
		{"256 gaps", 512, 1, false},
		{"1000 gaps", 2000, 1, false},
		{"1000 gaps, while permits come back", 2000, 3600 * 500, true},
	} {
		e, limit := newEngines(early), bucket(t, tc.rate, hour, tc.calls)
		var charges []algorithm.Charge
		call := func() {
			counter := algorithm.Counter{Key: []byte("bucket"), Limit: &limit, Cost: 1}
			charges = append(charges, counter.Charged(&e.decide(true, e.now, []algorithm.Counter{counter})[0]))
		}
		left := func() int64 {
			return e.decide(false, e.now, []algorithm.Counter{{Key: []byte("bucket"), Limit: &limit, Cost: 1}})[0].Remaining
		}
		for range tc.calls {
			call()
		}
		for i := int64(0); i < tc.calls; i += 2 { // the oldest first, of which each leaves a gap
			e.giveBack(charges[i])
			if got := left(); got != i/2+1 {
				t.Fatalf("%s: %d left after %d were given back", tc.name, got, i/2+1)
			}
		}
		if tc.rate > 1 {
			e.now += 1000 * millisecond // 500 of the 1000 come back
		}
		for i := int64(1); i < tc.calls; i += 2 {
			e.giveBack(charges[i])
		}
		lost := int64(e.process.RefundsLost())
		if got := left(); got > tc.calls || got < tc.calls-lost || lost > 0 != tc.lost {
			t.Errorf("%s: %d left of %d after all were given back, %d lost", tc.name, got, tc.calls, lost)
		}
		e.run(t, s, timed, nil)
	}
}

// When the positions are used up, they begin anew. Then an earlier charge can no longer be given
// back, and its refund gives back no other charge.
func TestBucketOfManyPositions(t *testing.T) {
	const last = 1<<52 - 1
	s, c := startServer(t), counter{limit: bucket(t, 10, second, 10)}
	taken := s.decide(timed, one("bucket", &c.limit, early, 2))[0]
	c.decide(early, 2)
	c.state.Charged, taken.Position = last, last
	if err := s.SetRange(context.Background(), "bucket", 30, "\xff\xff\xff\xff\xff\xff\x0f").Err(); err != nil {
		t.Fatal(err)
	}
	now := int64(early + 1)
	renewed := s.decide(timed, one("bucket", &c.limit, now, 3))[0]
	if want := c.decide(now, 3); renewed != want || renewed.Position >= last || renewed.Remaining != 5 {
		t.Errorf("Redis says %+v, this process %+v", renewed, want)
	}
	if n := s.giveBack(taken, one("bucket", &c.limit, now, 2)); n != 0 {
		t.Errorf("%d changed by what was charged before", n)
	}
	if n := s.giveBack(renewed, one("bucket", &c.limit, now, 3)); n != 1 {
		t.Errorf("%d changed by what was charged since", n)
	}
}
