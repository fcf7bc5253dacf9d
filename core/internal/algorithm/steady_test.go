package algorithm_test

import (
	"maps"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
)

// An answer stays the same for as long as Steady returns, whatever happened to the counter before.
// A refusal of one permit is steady until its wait is over.
func TestSteadyAnswers(t *testing.T) {
	all := families(t)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				of := rapid.SampledFrom(all[name]).Draw(t, "family")
				c, now := counter{limit: *of.limits[0]}, early+upTo(t, hour+3*of.window, "begin")
				var v algorithm.Verdict
				for range several(t) {
					c.limit = *rapid.SampledFrom(of.limits).Draw(t, "limit")
					now = min(late, now+later(t, of.window, v))
					cost := 1 + upTo(t, c.limit.Max-1, "cost")
					v = c.decide(now, cost)
					wantSteady(t, &c, v, cost)
				}
			})
		})
	}
}

func wantSteady(t *rapid.T, c *counter, v algorithm.Verdict, cost int64) {
	steady := c.limit.Steady(&v, cost)
	if v.RetryAfter > 0 && (steady > v.RetryAfter || cost == 1 && steady != v.RetryAfter && c.limit.Properties().Remembers) {
		t.Fatalf("steady for %d µs: %+v", steady, v)
	}
	if !c.limit.Properties().Remembers && steady > 0 {
		t.Fatalf("no refusal is remembered, and it is said to be steady for %d µs", steady)
	}
	if steady == 0 {
		return
	}
	longest := min(steady, late-v.At) - 1
	for _, after := range []int64{upTo(t, max(0, longest), "after"), max(0, longest)} {
		got := c.look(v.At+after, cost)
		want := v
		want.At, want.Position, want.Taken = v.At+after, 0, 0
		want.ResetAfter = max(0, v.ResetAfter-after)
		if v.RetryAfter == 0 { // it was charged: whether as much again fits is another question
			got.RetryAfter = 0
		} else {
			want.RetryAfter -= after
		}
		if got != want {
			t.Fatalf("steady for %d µs, and after %d\n%+v, want\n%+v", steady, after, got, want)
		}
	}
}

// A pause is steady until it ends, and then until its refusals are forgotten.
func TestSteadyPauses(t *testing.T) {
	limit := algorithm.PauseLimit
	for _, test := range []struct {
		v    algorithm.Verdict
		want int64
	}{
		{algorithm.Verdict{At: early, RetryAfter: 5, ResetAfter: 7}, 5},
		{algorithm.Verdict{At: early, ResetAfter: 7}, 7},
	} {
		if got := limit.Steady(&test.v, 2); got != test.want {
			t.Errorf("%+v is steady for %d µs, want %d", test.v, got, test.want)
		}
	}
	if got := limit.Steady(&algorithm.Verdict{At: early}, 2); got < 1000*hour {
		t.Errorf("without a pause, it is steady for %d µs", got)
	}
}

// A permit of a lease that is used later leaves the counter as if it had been charged then, to the
// microsecond.
func TestALeaseIsUsedWhereItWasCharged(t *testing.T) {
	all := families(t)
	for _, name := range []string{"sliding window", "fixed window"} {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				of := rapid.SampledFrom(all[name]).Draw(t, "family")
				leased, asked := counter{limit: *of.limits[4]}, counter{limit: *of.limits[4]}
				now, used := early+upTo(t, hour+3*of.window, "begin"), upTo(t, 90, "used")
				leased.decide(now, 1+used)
				asked.decide(now, 1+used)
				now += upTo(t, of.window, "then")
				v := leased.decide(now, 5)
				life := leased.limit.LeaseLife(&v)
				if life < 1 || life > of.window/32+1 || life > v.ResetAfter {
					t.Fatalf("a lease lives for %d µs of %d: %+v", life, of.window, v)
				}
				asked.decide(now, 1) // the same for the lease, whose charge may open a fixed window
				for range 4 {
					asked.decide(now+upTo(t, life-1, "when"), 1)
				}
				for _, later := range []int64{life, of.window / 2, of.window, of.window + life, 2 * of.window} {
					if got, want := leased.look(now+later, 1), asked.look(now+later, 1); got != want {
						t.Fatalf("%d µs after a lease of 5: %+v, and after 5 calls: %+v", later, got, want)
					}
				}
			})
		})
	}
	for _, limit := range oneOfEach(t) {
		if life := limit.LeaseLife(&algorithm.Verdict{At: early, ResetAfter: second}); limit.Leasable() != (life > 0) {
			t.Errorf("%s is leased for %d µs, and leasable is %v", limit.Kind.Tag(), life, limit.Leasable())
		}
	}
}

// Two limits are equal if the engines calculate with the same numbers, however they were made.
func TestSameLimits(t *testing.T) {
	berlin := func() *algorithm.Calendar { return algorithm.NewCalendar("day Europe/Berlin", time.UTC, false) }
	one := []algorithm.Limit{
		algorithm.Windowed(algorithm.SlidingWindow, 5, second), algorithm.Windowed(algorithm.SlidingWindow, 6, second),
		algorithm.Windowed(algorithm.SlidingWindow, 5, hour), algorithm.Windowed(algorithm.FixedWindow, 5, second),
		bucket(t, 5, second, 5), bucket(t, 10, second, 5), bucket(t, 5, second, 6), bucket(t, 5, 2*second, 5),
		algorithm.InCalendar(5, berlin()), algorithm.InCalendar(5, algorithm.NewCalendar("month Europe/Berlin", time.UTC, true)),
	}
	other := slices.Clone(one)
	other[8] = algorithm.InCalendar(5, berlin())
	for i := range one {
		for j := range other {
			if got := one[i].Equal(&other[j]); got != (i == j) {
				t.Errorf("limits %d and %d are the same: %v", i, j, got)
			}
		}
	}
}

// Permits of two leases can be joined if they count in the same sub-window, or in the same
// FixedWindow.
func TestLeasedTogether(t *testing.T) {
	sliding, fixed := algorithm.Windowed(algorithm.SlidingWindow, 9, 32*second), algorithm.Windowed(algorithm.FixedWindow, 9, 32*second)
	begins := int64(early) / (32 * second) * (32 * second)
	for _, test := range []struct {
		limit *algorithm.Limit
		a, b  algorithm.Verdict
		want  bool
	}{
		{&sliding, algorithm.Verdict{At: begins}, algorithm.Verdict{At: begins + second - 1}, true},
		{&sliding, algorithm.Verdict{At: begins + second - 1}, algorithm.Verdict{At: begins + second}, false},
		{&sliding, algorithm.Verdict{At: begins, Position: 7}, algorithm.Verdict{At: begins, Position: 5}, false},
		{&fixed, algorithm.Verdict{At: begins, Position: 7}, algorithm.Verdict{At: begins + 7, Position: 7}, true},
		{&fixed, algorithm.Verdict{At: begins, Position: 5}, algorithm.Verdict{At: begins + 7, Position: 7}, false},
	} {
		if got := test.limit.LeasedTogether(&test.a, &test.b); got != test.want {
			t.Errorf("%s: %+v and %+v together: %v", test.limit.Kind.Tag(), test.a, test.b, got)
		}
	}
}
