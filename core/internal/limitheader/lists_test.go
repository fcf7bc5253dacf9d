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

func TestDraft10(t *testing.T) {
	for _, test := range []struct {
		name          string
		limits        limits
		policy, limit string
	}{
		{"allowed", limits{limit(&wide, 1000, algorithm.Verdict{Remaining: 999, ResetAfter: 59_000_001})}, `"wide";q=1000;w=3600`, `"wide";r=999;t=60`},
		{"fresh", limits{limit(&wide, 1000, algorithm.Verdict{Remaining: 1000})}, `"wide";q=1000;w=3600`, `"wide";r=1000;t=0`},
		{"refused", limits{limit(&narrow, 5, algorithm.Verdict{RetryAfter: 1, ResetAfter: 40_000_000})}, `"narrow";q=5;w=2`, `"narrow";r=0;t=1`},
		{"a block without an end", limits{limit(&narrow, 5, algorithm.Verdict{RetryAfter: algorithm.Forever})}, `"narrow";q=5;w=2`, `"narrow";r=0`},
		{"a free slot", limits{limit(&slots, 2, algorithm.Verdict{Remaining: 1, ResetAfter: 1e6})}, `"slots";q=2;qu="concurrent-requests"`, `"slots";r=1`},
		{"no free slot", limits{limit(&slots, 2, algorithm.Verdict{RetryAfter: 1e6, ResetAfter: 9e6})}, `"slots";q=2;qu="concurrent-requests"`, `"slots";r=0;t=1`},
		{"several", limits{left(&wide, 1000, 7), left(&narrow, 5, 4)}, `"wide";q=1000;w=3600, "narrow";q=5;w=2`, `"wide";r=7;t=2, "narrow";r=4;t=2`},
		{"the largest number", limits{limit(&narrow, 5, algorithm.Verdict{Remaining: math.MaxInt64})}, `"narrow";q=5;w=2`, `"narrow";r=9223372036854775807;t=0`},
	} {
		t.Run(test.name, func(t *testing.T) {
			to := http.Header{}
			write(newWriter(limitheader.Draft10), to, test.limits...)
			wantHeader(t, to, map[string]string{"Ratelimit-Policy": test.policy, "Ratelimit": test.limit})
		})
	}
}

// The joined policies of a reply are reused for replies with the same limits, and for no others.
func TestPoliciesAreReusedForTheSameLimits(t *testing.T) {
	w := newWriter(limitheader.Draft10)
	for _, policies := range [][]*limitheader.Policy{{&wide, &narrow}, {&wide, &narrow}, {&narrow, &wide}, {&narrow}, {&wide}, {&narrow, &wide}, {&narrow, &wide, &slots}, {&narrow, &slots}} {
		to, want := http.Header{}, make([]string, len(policies))
		for i, p := range policies {
			l := left(p, 5, 1)
			w.Add(l)
			want[i] = p.Draft10
		}
		w.Write(to, false)
		if got := to.Get("RateLimit-Policy"); got != strings.Join(want, ", ") {
			t.Errorf("%s, want %q", got, want)
		}
	}
}

// A title is printable ASCII of bounded length, and arrives as it was, whatever is in it. Different
// names have different titles.
func TestTitles(t *testing.T) {
	seen := map[string]string{}
	for _, name := range []string{
		"api", "", `say "hi" \ there`, `"`, `\`, ` a;r=9, "b"`, "100%", "/größe/**", "\x00\xff\r\n", "\x7f",
		strings.Repeat("a", 128), strings.Repeat("a", 129), strings.Repeat("a", 130), strings.Repeat("ä", 64),
	} {
		title := limitheader.Title(name)
		policy := limitheader.NewPolicy(title, 5, time.Second, false)
		item, err := httpsfv.UnmarshalItem([]string{policy.Draft10})
		if err != nil || item.Value != title || len(title) > 128 {
			t.Errorf("%q: %v in %s, title %q", name, err, policy.Draft10, title)
		}
		if other, ok := seen[title]; ok {
			t.Errorf("%q and %q are both %q", name, other, title)
		}
		seen[title] = name
	}
}
