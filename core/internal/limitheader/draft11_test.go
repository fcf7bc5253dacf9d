package limitheader_test

import (
	"math"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/dunglas/httpsfv"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
	"github.com/accesslimit/accesslimit/core/internal/limitheader"
)

// fixed returns a limit of which all permits come back at once.
func fixed(policy limitheader.Policy, v algorithm.Verdict) limitheader.Limit {
	of := algorithm.Windowed(algorithm.FixedWindow, 1000, micros(time.Hour))
	return limitheader.Limit{Policy: &policy, Verdict: &v, Counter: &algorithm.Counter{Limit: &of}}
}

func leased(p limitheader.Policy) limitheader.Policy {
	p.Leased = true
	return p
}

func soft(l limitheader.Limit) limitheader.Limit {
	l.Counter.Behind = 1
	return l
}

func TestDraft11(t *testing.T) {
	const second = 1_000_000
	for name, test := range map[string]struct {
		limit   limitheader.Limit
		refused bool
		want    string
	}{
		"the time until permits are back, rounded down": {fixed(wide, algorithm.Verdict{Remaining: 999, ResetAfter: 60*second - 1}), false, `"wide";r=999;t=59`},
		"a second":                       {fixed(wide, algorithm.Verdict{Remaining: 999, ResetAfter: second}), false, `"wide";r=999;t=1`},
		"less than a second":             {fixed(wide, algorithm.Verdict{Remaining: 999, ResetAfter: second - 1}), false, `"wide";r=999`},
		"unused":                         {fixed(wide, algorithm.Verdict{Remaining: 1000}), false, `"wide";r=1000;t=3600`},
		"the last permit":                {fixed(wide, algorithm.Verdict{ResetAfter: second + 1}), false, `"wide";r=0;t=2`},
		"refused":                        {fixed(wide, algorithm.Verdict{RetryAfter: 1, ResetAfter: 40 * second}), true, `"wide";r=0;t=1`},
		"refused for its cost":           {fixed(wide, algorithm.Verdict{Remaining: 3, RetryAfter: 30 * second, ResetAfter: 30 * second}), true, `"wide";r=3`},
		"refused by another":             {fixed(wide, algorithm.Verdict{Remaining: 3, ResetAfter: 30 * second}), true, `"wide";r=3`},
		"the last, refused by another":   {fixed(wide, algorithm.Verdict{ResetAfter: 30 * second}), true, `"wide";r=0`},
		"a block without an end":         {fixed(wide, algorithm.Verdict{RetryAfter: algorithm.Forever}), true, `"wide";r=0`},
		"a soft cost that never fits":    {fixed(wide, algorithm.Verdict{Remaining: 3, RetryAfter: algorithm.Forever}), false, `"wide";r=3`},
		"a soft limit":                   {soft(fixed(wide, algorithm.Verdict{RetryAfter: second})), false, `"wide";r=0;t=1`},
		"soft, and refused by another":   {soft(fixed(wide, algorithm.Verdict{RetryAfter: second})), true, `"wide";r=0`},
		"leased permits, which may come": {fixed(leased(wide), algorithm.Verdict{Remaining: 3, ResetAfter: second}), false, `"wide";r=3`},
		"the last leased permit":         {fixed(leased(wide), algorithm.Verdict{ResetAfter: second}), false, `"wide";r=0`},
		"refused by a leased rule":       {fixed(leased(wide), algorithm.Verdict{RetryAfter: second, ResetAfter: second}), true, `"wide";r=0;t=1`},
		"a remembered refusal":           {fixed(wide, algorithm.Verdict{RetryAfter: second, From: algorithm.FromRefusal}), true, `"wide";r=0;t=1`},
		"a share of a process":           {fixed(wide, algorithm.Verdict{Remaining: 9, ResetAfter: second, From: algorithm.FromLocal}), false, `"wide";r=9`},
		"the largest number":             {fixed(wide, algorithm.Verdict{Remaining: 1e12, ResetAfter: math.MaxInt64 / 1000}), false, `"wide";r=1000000000000;t=9223372036`},
	} {
		to := http.Header{}
		w := newWriter(limitheader.Draft11)
		w.Add(test.limit)
		w.Write(to, test.refused)
		if got := to.Get("RateLimit"); got != test.want || to.Get("RateLimit-Policy") != `"wide";q=1000;w=3600` {
			t.Errorf("%s: %v, want %s", name, to, test.want)
		}
	}
}

// The policy names the unit of its numbers, unless they are requests. The numbers fit in a structured
// field, however large the unit is.
func TestUnitsOfDraft11(t *testing.T) {
	of := func(p limitheader.Policy, unit int64) limitheader.Limit {
		l := fixed(p, algorithm.Verdict{Remaining: 1, ResetAfter: 5e6})
		l.Unit = unit
		return l
	}
	none := of(slots, 1024)
	none.Counter.Limit = new(algorithm.Windowed(algorithm.Concurrency, 2, micros(time.Minute)))
	for _, test := range []struct {
		limits        limits
		policy, limit string
	}{
		{limits{of(narrow, 0)}, `"narrow";q=5;w=2`, `"narrow";r=1;t=5`},
		{limits{of(narrow, 1)}, `"narrow";q=5;qu="content-bytes";w=2`, `"narrow";r=1;t=5`},
		{limits{of(wide, 0), of(narrow, 1024)}, `"wide";q=1000;w=3600, "narrow";q=5120;qu="content-bytes";w=2`, `"wide";r=1;t=5, "narrow";r=1024;t=5`},
		{limits{of(narrow, math.MaxInt64)}, `"narrow";q=999999999999999;qu="content-bytes";w=2`, `"narrow";r=999999999999999;t=5`},
		{limits{none}, `"slots";q=2;qu="concurrent-requests"`, `"slots";r=1`},
	} {
		to := http.Header{}
		write(newWriter(limitheader.Draft11), to, test.limits...)
		wantHeader(t, to, map[string]string{"Ratelimit-Policy": test.policy, "Ratelimit": test.limit})
		for name, lines := range to {
			if list, err := httpsfv.UnmarshalList(lines); err != nil || len(list) != len(test.limits) {
				t.Errorf("%s: %q: %v", name, lines, err)
			}
		}
		to = http.Header{}
		write(newWriter(limitheader.Draft10), to, test.limits...)
		if got := to.Get("RateLimit-Policy"); strings.Contains(got, "content-bytes") {
			t.Errorf("draft 10: %s", got)
		}
	}
}

// A reply in this form takes no more memory than one in the other.
func TestDraft11DoesNotAllocate(t *testing.T) {
	w, to, l := newWriter(limitheader.Draft11), http.Header{}, fixed(wide, algorithm.Verdict{Remaining: 999, ResetAfter: 60e6})
	if n := testing.AllocsPerRun(1000, func() { clear(to); write(w, to, l) }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}
