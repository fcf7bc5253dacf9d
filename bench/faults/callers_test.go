package faults_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/accesslimit/accesslimit/core"
)

// trip is one call as its caller saw it.
type trip struct {
	way, subject string
	late         time.Duration // by how much it came back after its deadline; negative when before
	decision     core.Decision
	err          error
}

// decided says whether Redis answered.
func (t trip) decided() bool { return decided(t.decision, t.err) }

// ended says whether the caller had left by then.
func (t trip) ended() bool {
	return t.decision.Reason == core.ContextEnded || errors.Is(t.err, context.DeadlineExceeded)
}

// trips are those of many callers.
type trips []trip

// under has so many callers call, each at this pace, from before something happens until after it.
func (s *service) under(callers int, pace time.Duration, limit core.Limit, happens func()) trips {
	var (
		over  atomic.Bool
		mutex sync.Mutex
		all   trips
		ways  = s.ways(limit)
	)
	go func() {
		defer over.Store(true)
		happens()
	}()
	together(callers, func(i int) {
		var own trips
		for n := 0; !over.Load(); n++ {
			own = append(own, travel(ways, i, n))
			time.Sleep(pace)
		}
		mutex.Lock()
		defer mutex.Unlock()
		all = append(all, own...)
	})
	return all
}

// travel makes one call: in one of the four ways, to the hot key or to one that nobody else calls, without a deadline of the
// caller's own or, one of four, with one.
func travel(ways map[string]ask, caller, n int) trip {
	t := trip{way: [...]string{"direct", "open", "closed", "local"}[caller%4], subject: "hot"}
	if caller/4%2 == 0 {
		t.subject = fmt.Sprintf("call-%d-%d", caller, n)
	}
	ctx, within := context.Background(), timeout
	if caller/8%4 == 0 {
		within = timeout / 3
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, within)
		defer cancel()
	}
	begin := time.Now()
	t.decision, t.err = ways[t.way](ctx, t.subject)
	t.late = time.Since(begin) - within
	return t
}

// wantInTime checks when the calls came back, and says it: by their deadline, and what the machine takes to wake them. Under the race
// detector, beside other tests on a busy machine, that is no measure of the limiter; what is guarded against takes seconds.
func (all trips) wantInTime(t *testing.T) string {
	t.Helper()
	slices.SortFunc(all, func(a, b trip) int { return cmp.Compare(a.late, b.late) })
	worst, most := all[len(all)-1], all[len(all)*999/1000]
	if slack := shortOr(time.Second, 10*time.Millisecond); worst.late > slack {
		t.Errorf("%d calls: 99.9 %% of them at most %v late, but %+v", len(all), most.late, worst)
	}
	return fmt.Sprintf("%d calls, back at most %.1f ms after their deadline (99.9 %%: %.1f ms)", len(all), millis(worst.late), millis(most.late))
}

func millis(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// wantChargedOnce checks what the server charged in the end: each call at most once, and once if it was told so. Only of calls that
// left, or of which nobody knows, it may have charged some.
func (all trips) wantChargedOnce(s *service, limit core.Limit) {
	s.t.Helper()
	type place struct{ way, subject string }
	made, told, subjects := make(map[place]int), make(map[place]int), make(map[string][]string)
	doubtful := s.failures(core.StoreTimeout) + s.failures(core.StoreConnectionLost)
	for _, trip := range all {
		at := place{trip.way, trip.subject}
		if made[at]++; made[at] == 1 {
			subjects[trip.way] = append(subjects[trip.way], trip.subject)
		}
		switch {
		case trip.decided():
			told[at]++
		case trip.ended():
			doubtful++
		}
	}
	untold := 0
	for way, of := range subjects {
		for i, used := range charged(s.t, s.server, way, limit, of) {
			at := place{way, of[i]}
			if used < told[at] || used > made[at] {
				s.t.Errorf("%s, %s: charged %d times by %d calls, of which %d were told so", way, of[i], used, made[at], told[at])
			}
			untold += used - told[at]
		}
	}
	if untold > doubtful {
		s.t.Errorf("%d calls were charged and not told so, of %d that left or may have been charged", untold, doubtful)
	}
}

// wantPolicies checks the answers to those whom Redis gave none, of whom there must be some.
func (all trips) wantPolicies(t *testing.T) {
	t.Helper()
	failed := 0
	for _, trip := range all {
		if !trip.decided() && !trip.ended() {
			failed++
			wantPolicy(t, trip.way, trip.decision, trip.err)
		}
	}
	if failed == 0 {
		t.Errorf("all of %d calls were decided, so nothing was ill", len(all))
	}
}

// wantDecided checks that Redis answered every call.
func (all trips) wantDecided(t *testing.T) {
	t.Helper()
	for _, trip := range all {
		if !trip.decided() && !trip.ended() {
			t.Errorf("%+v; want it decided", trip)
		}
	}
}
