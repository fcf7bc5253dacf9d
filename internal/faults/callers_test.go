package faults_test

import (
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
	late         time.Duration // time from its deadline to its return; negative if it was in time
	decision     core.Decision
	err          error
}

// decided reports whether Redis answered.
func (t trip) decided() bool { return decided(t.decision, t.err) }

// ended reports whether the caller's context had ended.
func (t trip) ended() bool {
	return t.decision.Reason == core.ContextEnded || errors.Is(t.err, context.DeadlineExceeded)
}

// trips are the calls of many callers.
type trips []trip

// under starts this many callers, each calling at this pace, runs happens, and returns all of their
// calls.
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
	var timers sync.WaitGroup
	defer timers.Wait()
	for range 16 {
		timers.Go(func() { s.time(&over) })
	}
	together(callers, func(i int) {
		var own trips
		for n := 0; !over.Load(); n++ {
			own = append(own, travel(ways, s.within, i, n))
			time.Sleep(pace)
		}
		mutex.Lock()
		defer mutex.Unlock()
		all = append(all, own...)
	})
	return all
}

// travel makes one call: in one of the four ways, to the hot key or to one that nobody else calls,
// and for one caller in four with a deadline of its own. The others wait until the limiter's Timeout.
func travel(ways map[string]ask, within time.Duration, caller, n int) trip {
	t := trip{way: [...]string{"direct", "open", "closed", "local"}[caller%4], subject: "hot"}
	if caller/4%2 == 0 {
		t.subject = fmt.Sprintf("call-%d-%d", caller, n)
	}
	ctx := context.Background()
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

// time measures how late bare timers are while the callers call.
func (s *service) time(over *atomic.Bool) {
	late := bareTimers(over)
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.bare = append(s.bare, late...)
}

// bareTimers measures how late the machine wakes a goroutine that only waits for a deadline.
func bareTimers(over *atomic.Bool) (late []time.Duration) {
	for !over.Load() {
		begin := time.Now()
		ctx, cancel := context.WithTimeout(context.Background(), timeout/10)
		<-ctx.Done()
		late = append(late, time.Since(begin)-timeout/10)
		cancel()
	}
	return late
}

// wantInTime checks how late calls returned that had to wait for their deadline, and returns a
// summary. 99.9 % must return within 10 ms, besides the time that the machine takes to wake first
// the timer and then the caller. The short form, which runs beside other
// tests, only looks for delays of seconds.
func (all trips) wantInTime(s *service) string {
	s.t.Helper()
	late := make([]time.Duration, len(all))
	for i := range all {
		late[i] = all[i].late
	}
	return wantInTime(s.t, "calls", late, s.bare)
}

// wantInTime is trips.wantInTime for whatever was to be back by a deadline: late says how much later
// each was, and bare how late bare timers were.
func wantInTime(t *testing.T, what string, late, bare []time.Duration) string {
	t.Helper()
	all := len(late)
	late = slices.DeleteFunc(late, func(by time.Duration) bool { return by <= -timeout/10 })
	if len(late) == 0 {
		return fmt.Sprintf("%d %s, none had to wait for its deadline", all, what)
	}
	most, worst := tail(late)
	usual, bareWorst := tail(bare)
	if slack := shortOr(time.Second, 10*time.Millisecond); most > slack+2*bareWorst {
		t.Errorf("%d %s waited: 99.9 %% of them at most %v late, and %v at worst; a bare timer %v and %v", len(late), what, most, worst, usual, bareWorst)
	}
	return fmt.Sprintf("%d %s; of %d that waited for their deadline "+
		"99.9 %% back within %.1f ms of it, all within %.1f ms (a bare timer: %.1f and %.1f ms)",
		all, what, len(late), millis(most), millis(worst), millis(usual), millis(bareWorst))
}

// tail returns the 99.9th percentile and the largest.
func tail(of []time.Duration) (most, worst time.Duration) {
	slices.Sort(of)
	return of[len(of)*999/1000], of[len(of)-1]
}

func millis(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// wantChargedOnce checks the server's charges in the end: at most one for each call, and exactly
// one if the caller was told so. A call whose caller left, or whose reply was lost, may be charged
// or not.
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

// wantPolicies checks the answers to calls that Redis did not answer. There must be some.
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
		t.Errorf("all of %d calls were decided, so nothing failed", len(all))
	}
}

// wantDecided checks that Redis answered every call.
func (all trips) wantDecided(t *testing.T) {
	t.Helper()
	failed := 0
	for _, trip := range all {
		if trip.decided() || trip.ended() {
			continue
		}
		if failed++; failed == 1 {
			t.Errorf("%+v; want it decided", trip)
		}
	}
	if failed > 1 {
		t.Errorf("%d of %d calls were not decided", failed, len(all))
	}
}
