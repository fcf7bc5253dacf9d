package limitheader_test

import (
	"net/http"
	"strconv"
	"testing"
	"time"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
	"github.com/accesslimit/accesslimit/core/internal/limitheader"
	"github.com/accesslimit/accesslimit/core/internal/waits"
)

func TestOlderStylesShowTheLimitThatBinds(t *testing.T) {
	for style, want := range map[limitheader.Style]map[string]string{
		limitheader.Draft7:          {"Ratelimit-Policy": "5;w=2", "Ratelimit": "limit=5, remaining=4, reset=2"},
		limitheader.XRateLimitDelta: {"X-Ratelimit-Limit": "5", "X-Ratelimit-Remaining": "4", "X-Ratelimit-Reset": "2"},
	} {
		for _, both := range []limits{{left(&narrow, 5, 4), left(&wide, 1000, 900)}, {left(&wide, 1000, 900), left(&narrow, 5, 4)}} {
			to := http.Header{}
			write(newWriter(style), to, both...)
			wantHeader(t, to, want)
		}
	}
}

// In unix seconds, the reset is the first whole second at which the wait is over: not earlier, and
// not one more.
func TestResetInUnixSeconds(t *testing.T) {
	for i := range 20 {
		// The wait ends shortly before a whole second, where rounding up twice would show.
		wait := 3*time.Second - time.Duration(time.Now().UnixNano())%time.Second - time.Duration(i)*10*time.Millisecond
		to, before := http.Header{}, time.Now()
		write(newWriter(limitheader.XRateLimit), to, limit(&narrow, 5, algorithm.Verdict{RetryAfter: micros(wait)}))
		after := time.Now()
		earliest := waits.Seconds(time.Duration(before.Add(wait.Truncate(time.Microsecond)).UnixNano()))
		latest := waits.Seconds(time.Duration(after.Add(wait).UnixNano()))
		if got, err := strconv.ParseInt(to.Get("X-RateLimit-Reset"), 10, 64); err != nil || got < earliest || got > latest {
			t.Fatalf("X-RateLimit-Reset %d, %v; want %d to %d", got, err, earliest, latest)
		}
	}
}

// The older styles show Concurrency only if it refuses the call, and a block only if it has an end.
// Otherwise they show another limit or none.
func TestOlderStylesOmitLimitsWithoutATime(t *testing.T) {
	free, taken := limit(&slots, 2, algorithm.Verdict{ResetAfter: 1e6}), limit(&slots, 2, algorithm.Verdict{RetryAfter: 1e6, ResetAfter: 1e6})
	forever := limit(&narrow, 5, algorithm.Verdict{RetryAfter: algorithm.Forever})
	for style, names := range map[limitheader.Style][3]string{
		limitheader.Draft7:          {"RateLimit", "limit=1000, remaining=900, reset=2", "limit=2, remaining=0, reset=1"},
		limitheader.XRateLimit:      {"X-RateLimit-Limit", "1000", "2"},
		limitheader.XRateLimitDelta: {"X-RateLimit-Limit", "1000", "2"},
	} {
		for _, test := range []struct {
			limits limits
			want   string
		}{
			{limits{free}, ""},
			{limits{forever}, ""},
			{limits{free, left(&wide, 1000, 900)}, names[1]},
			{limits{forever, left(&wide, 1000, 900)}, names[1]},
			{limits{taken, left(&wide, 1000, 900)}, names[2]},
		} {
			to := http.Header{}
			write(newWriter(style), to, test.limits...)
			if got := to.Get(names[0]); got != test.want || got == "" && len(to) > 0 {
				t.Errorf("%v, %+v: %v, want %q", style, test.limits, to, test.want)
			}
		}
	}
}

// Comparing the limits of stacked middlewares does not allocate. The state that a response
// keeps takes less than one allocation for each reply.
func TestStackedWritersDoNotAllocate(t *testing.T) {
	w, to, outer, inner := newWriter(limitheader.XRateLimitDelta), http.Header{}, left(&wide, 1000, 9), left(&narrow, 5, 4)
	allocations := testing.AllocsPerRun(1000, func() {
		clear(to)
		write(w, to, outer)
		write(w, to, inner)
	})
	if allocations > 0 {
		t.Errorf("%v allocations", allocations)
	}
	wantHeader(t, to, map[string]string{"X-Ratelimit-Limit": "5", "X-Ratelimit-Remaining": "4", "X-Ratelimit-Reset": "2"})
}
