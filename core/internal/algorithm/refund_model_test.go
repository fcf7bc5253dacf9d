package algorithm_test

import (
	"cmp"
	"context"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
)

// tub models a bucket by a list of all charges. For each rate it holds the permits that were
// charged and not given back, oldest first. The oldest of them come back first.
type tub struct {
	at    int64 // the tick at which it was written
	parts []tubPart
}

type tubPart struct {
	permit, refill int64
	used           int64 // units
	held           []heldPermits
}

// heldPermits are some permits of one charge.
type heldPermits struct{ charge, permits int64 }

// nobody is the holder of permits that a refund could not give back.
const nobody = -1

func (b *tub) drained(at int64) (parts []tubPart, whole int64) {
	for _, p := range b.parts {
		p.held = slices.Clone(p.held)
		p.used = max(0, p.used-max(0, at-b.at)*p.refill)
		whole = max(whole, (p.used+p.refill-1)/p.refill)
		parts = append(parts, p)
	}
	if whole == 0 {
		return nil, 0
	}
	return parts, whole
}

// find returns the bucket as a limit sees it: the parts, the place of the limit's own part or -1,
// the units used, and when everything is back at the latest.
func (b *tub) find(l *algorithm.Limit, at int64) (parts []tubPart, own int, used, whole int64, held []heldPermits) {
	parts, whole = b.drained(at)
	own = slices.IndexFunc(parts, func(p tubPart) bool { return p.permit == l.Permit && p.refill == l.Refill })
	switch {
	case parts == nil:
	case own >= 0:
		used, whole = parts[own].used, 0
	default:
		for i, p := range b.parts {
			part := p.used % p.permit * l.Permit
			if units := p.used/p.permit*l.Permit + (part+p.permit-1)/p.permit; units > used {
				used, held = units, parts[i].held
			}
		}
		used = max(0, used-max(0, at-b.at)*l.Refill)
	}
	return parts, own, used, whole, held
}

func (b *tub) answer(l *algorithm.Limit, now, cost int64) (want algorithm.Verdict) {
	at := now / l.Tick
	_, _, used, whole, _ := b.find(l, at)
	after := func(units int64) int64 {
		ticks := (units + l.Refill - 1) / l.Refill
		if whole > 0 {
			ticks = min(ticks, whole)
		}
		return (at+ticks)*l.Tick - now
	}
	want = algorithm.Verdict{At: now, Remaining: max(0, l.Max-(used+l.Permit-1)/l.Permit)}
	if used > 0 {
		want.ResetAfter = after(used)
	}
	if over := used + (cost-l.Max)*l.Permit; over > 0 {
		want.RetryAfter = after(over)
	}
	return want
}

func (b *tub) charge(l *algorithm.Limit, now, cost, id int64) {
	parts, own, used, _, held := b.find(l, now/l.Tick)
	if own < 0 {
		parts = append(parts, tubPart{l.Permit, l.Refill, used, slices.Clone(held)})
		slices.SortFunc(parts, func(a, b tubPart) int { return cmp.Compare(a.refill*b.permit, b.refill*a.permit) })
	}
	for i := range parts {
		if p := &parts[i]; p.refill*l.Permit >= l.Refill*p.permit { // no slower
			p.used += cost * p.permit
			p.held = append(p.held, heldPermits{id, cost})
		}
	}
	b.at, b.parts = now/l.Tick, parts
}

// refund gives back the newest permits of a charge that were not given back before.
func (b *tub) refund(l *algorithm.Limit, now, permits, id int64) {
	parts, _ := b.drained(now / l.Tick)
	changed := false
	for i := range parts {
		changed = parts[i].refund(l, permits, id) || changed
	}
	if changed {
		b.at, b.parts = now/l.Tick, parts
	}
	for i := range parts {
		b.parts[i].held = parts[i].held
	}
}

func (p *tubPart) refund(l *algorithm.Limit, permits, id int64) bool {
	at := slices.IndexFunc(p.held, func(h heldPermits) bool { return h.charge == id })
	if at < 0 {
		return false
	}
	behind := int64(0)
	for _, h := range p.held[at+1:] {
		behind += h.permits
	}
	given := permits
	if p.permit == l.Permit && p.refill == l.Refill && p.used > l.Max*l.Permit {
		given = max(0, permits-behind)
	}
	back := max(0, min(p.used-behind*p.permit, given*p.permit))
	if back == 0 {
		given = 0
	}
	p.used -= back
	p.held[at].permits -= permits
	p.held = slices.Insert(p.held, at+1, heldPermits{nobody, permits - given})
	return back > 0
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

// If there are more gaps than a bucket keeps, the oldest are merged. Then less may be given back,
// but never more than was taken.
func TestBucketOfManyGaps(t *testing.T) {
	s, e := startServer(t), newEngines(early)
	limit := bucket(t, 1, hour, 400)
	var charges []algorithm.Charge
	for range 400 {
		counter := algorithm.Counter{Key: []byte("bucket"), Limit: &limit, Cost: 1}
		charges = append(charges, counter.Charged(&e.decide(true, e.now, []algorithm.Counter{counter})[0]))
	}
	left := func() int64 {
		return e.decide(false, e.now, []algorithm.Counter{{Key: []byte("bucket"), Limit: &limit, Cost: 1}})[0].Remaining
	}
	for i := 0; i < 400; i += 2 { // the oldest first, of which each leaves a gap
		e.giveBack(charges[i])
		e.giveBack(charges[i]) // a second time it gives nothing
		if got := left(); got != int64(i/2+1) {
			t.Fatalf("%d left after %d were given back", got, i/2+1)
		}
	}
	for i := 1; i < 400; i += 2 {
		e.giveBack(charges[i])
	}
	if got := left(); got < 200+64 || got > 400 {
		t.Errorf("%d left after all 400 were given back", got)
	}
	e.run(t, s, timed, nil)
}

// When the positions are used up, they begin anew. Then an earlier charge can no longer be given
// back, and its refund gives back no other charge.
func TestBucketOfManyPositions(t *testing.T) {
	const last = 1<<52 - 1
	s, c := startServer(t), counter{limit: bucket(t, 10, second, 10)}
	taken := s.decide(timed, one("bucket", &c.limit, early, 2))[0]
	c.decide(early, 2)
	c.state.Charged, taken.Position = last, last
	if err := s.SetRange(context.Background(), "bucket", 28, "\xff\xff\xff\xff\xff\xff\x0f").Err(); err != nil {
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
