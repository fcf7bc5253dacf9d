package core_test

import (
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"pgregory.net/rapid"

	"github.com/accesslimit/accesslimit/core"
)

// modelRule is a rule of a random guard, and what the model says of its counters.
type modelRule struct {
	core.Rule
	subject string
	limits  []core.Limit
}

// counterOf identifies a counter of the model. A rule in DryRun has its own.
type counterOf struct {
	name, subject string
	dry           bool
	limit         core.Limit
}

func (r *modelRule) counter(i int) counterOf {
	return counterOf{r.Name, r.subject, r.Mode == core.DryRun, r.limits[i]}
}

func (r *modelRule) lenient() bool { return r.Mode != core.Enforce }

// drawRule draws a rule of one of several kinds. It has one to three limits, whose windows are
// longer than a test.
func drawRule(t *rapid.T, name string, kinds int) *modelRule {
	r := &modelRule{subject: rapid.SampledFrom([]string{"a", "b"}).Draw(t, "subject")}
	kind := rapid.IntRange(0, kinds-1).Draw(t, "kind")
	r.Name, r.Mode = name, core.Mode(kind)
	for i := range rapid.IntRange(1, 3).Draw(t, "limits") {
		limit := core.Limit{Max: rapid.IntRange(1, 6).Draw(t, "max"), Window: time.Duration(300+i) * 24 * time.Hour}
		limit.Algorithm = rapid.SampledFrom([]core.Algorithm{core.SlidingWindow, core.SlidingLog, core.TokenBucket}).Draw(t, "algorithm")
		r.limits = append(r.limits, limit)
	}
	r.Limit, r.Also = r.limits[0], r.limits[1:]
	r.Key = key(r.subject)
	r.Cost = func(r core.Request) int { return int(r.Size()) }
	return r
}

// leniencyModel says what calls by rules do.
type leniencyModel struct {
	rules []*modelRule
	used  map[counterOf]int
}

// fits reports whether a cost fits into all limits of a rule.
func (m *leniencyModel) fits(r *modelRule, cost int) bool {
	for i, limit := range r.limits {
		if m.used[r.counter(i)]+cost > limit.Max {
			return false
		}
	}
	return true
}

// call returns the status and the reason of a call, and charges its rules, each in all of its limits
// or in none.
func (m *leniencyModel) call(cost int) (status int, reason core.Reason) {
	status, reason = 200, core.Allowed
	for _, r := range m.rules {
		largest := slices.MinFunc(r.limits, func(a, b core.Limit) int { return a.Max - b.Max }).Max
		switch {
		case !r.lenient() && cost > largest:
			return 400, core.CostTooHigh
		case m.fits(r, cost) || r.Mode == core.DryRun:
		case r.Mode == core.Enforce:
			status, reason = 429, core.LimitExceeded
		case status == 200:
			reason = core.SoftExceeded
		}
	}
	charged := make(map[counterOf]bool) // rules that occur twice are charged once
	for _, r := range m.rules {
		if status == 200 && m.fits(r, cost) && !charged[r.counter(0)] {
			for i := range r.limits {
				m.used[r.counter(i)] += cost
				charged[r.counter(i)] = true
			}
		}
	}
	return status, reason
}

// A rule that refuses nobody is charged in all of its limits or in none. It neither keeps other
// rules from being charged, nor lets a call pass that another rule refuses.
func TestLenientRulesAsTheModelSays(t *testing.T) {
	onEveryDeployment(t, func(t *testing.T, options core.Options) {
		kinds := 3
		if _, one := options.Redis.(*redis.Client); options.Redis != nil && !one {
			kinds = 2 // nobody could wait until a counter in DryRun has its permits back from another server's refusal
		}
		var guards atomic.Int32
		var heard decisions
		options.OnDecision = heard.note
		limiter := newLimiter(t, options)
		rapid.Check(t, func(t *rapid.T) {
			m := &leniencyModel{used: make(map[counterOf]int)}
			guard := m.guard(t, limiter, fmt.Sprint("rule", guards.Add(1)), kinds)
			for range rapid.IntRange(1, 8).Draw(t, "calls") {
				heard.heard = nil
				v := newView("GET", "/")
				v.size = rapid.Int64Range(1, 7).Draw(t, "cost")
				want, reason := m.call(int(v.size))
				answer := guard.Check(v)
				if got := status(answer); got != want {
					t.Fatalf("status %d, want %d", got, want)
				}
				whole := heard.heard[len(heard.heard)-1]
				if allDry := !slices.ContainsFunc(m.rules, func(r *modelRule) bool { return r.Mode != core.DryRun }); whole.Reason != reason && !allDry {
					t.Fatalf("the reason is %s, want %s: %+v", whole.Reason, reason, whole)
				}
				m.checkUse(t, limiter, heard.heard)
			}
		})
	})
}

// guard draws rules, of which one may occur twice, and one in DryRun may have the name of another.
func (m *leniencyModel) guard(t *rapid.T, limiter *core.Limiter, name string, kinds int) *core.Guard {
	for i := range rapid.IntRange(1, 4).Draw(t, "rules") {
		switch {
		case i > 0 && rapid.IntRange(0, 4).Draw(t, "twice") == 0:
			m.rules = append(m.rules, m.rules[i-1])
		default:
			r := drawRule(t, fmt.Sprint(name, "-", i), kinds)
			if r.Mode == core.DryRun && i > 0 && m.rules[i-1].Mode != core.DryRun && rapid.Bool().Draw(t, "the same name") {
				r.Name = m.rules[i-1].Name
			}
			m.rules = append(m.rules, r)
		}
	}
	rules := make([]core.Rule, len(m.rules))
	for i, r := range m.rules {
		rules[i] = r.Rule
	}
	guard, err := limiter.Guard(rules...)
	if err != nil {
		t.Fatalf("%v", err)
	}
	return guard
}

// checkUse compares the counters with the model: those of rules in DryRun as they were reported, and
// the others by handles. On several servers, what a refused call was charged is given back soon.
func (m *leniencyModel) checkUse(t *rapid.T, limiter *core.Limiter, heard []core.Decision) {
	for _, r := range m.rules {
		for i, limit := range r.limits {
			want := limit.Max - m.used[r.counter(i)]
			if r.Mode == core.DryRun {
				m.checkReported(t, r, limit, want, heard)
				continue
			}
			left := func() int {
				d, err := peek(limiter, background, r.Name, r.subject, limit)
				if err != nil {
					t.Fatalf("%v", err)
				}
				return d.Remaining
			}
			for deadline := time.Now().Add(patient); left() != want; time.Sleep(time.Millisecond) {
				if time.Now().After(deadline) {
					t.Fatalf("%s (%v) of %s has %d left of %v, want %d", r.Name, r.Mode, r.subject, left(), limit, want)
				}
			}
		}
	}
}

// checkReported checks what the decision about a rule in DryRun says of one of its limits.
func (m *leniencyModel) checkReported(t *rapid.T, r *modelRule, limit core.Limit, want int, heard []core.Decision) {
	for _, d := range heard[:len(heard)-1] {
		all := d.All
		if all == nil {
			all = []core.Decision{d}
		}
		for _, part := range all {
			if part.Rule == r.Name && part.Key == r.subject && part.Limit.Window == limit.Window && part.Limit.Algorithm == limit.Algorithm && part.Remaining != want {
				t.Fatalf("%s in DryRun has %d left of %v, want %d", r.Name, part.Remaining, limit, want)
			}
		}
	}
}
