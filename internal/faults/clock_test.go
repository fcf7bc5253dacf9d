package faults_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/operate"
	"github.com/accesslimit/accesslimit/internal/algorithms"
	"github.com/accesslimit/accesslimit/internal/redistest"
)

const (
	clockBackFault    = "the server's clock is set back an hour"
	clockForwardFault = "the server's clock is set forward a day"
)

// If a server's clock is set back, no permits are created and nobody is blocked for longer than a
// window. If it is set forward, at most the limit is let in once more. Here libfaketime sets the
// clock of a real server. Only the long form does so, because it waits for windows to end. The core
// tests the same with the time as an argument.
func TestServerClockSet(t *testing.T) {
	if !long() {
		return
	}
	const most, window = 10, 4 * time.Second
	for _, set := range []struct {
		fault, by string
		step      time.Duration
		fresh     int // how many times the limit may be let in by the step
	}{
		{clockBackFault, "-3600", -time.Hour, 0},
		{clockForwardFault, "+86400", 24 * time.Hour, 1},
	} {
		t.Run(set.by, func(t *testing.T) {
			server, turn := startOnClock(t)
			// The other limiter remembers no refusal.
			s, other := newService(t, server), newService(t, server)
			again, most, limits := time.Duration(0), most, lasting(most, window)
			for name, limit := range limits {
				s.useUp(name, limit)
			}
			wantClock(t, server, 0)
			turn(set.by)
			wantClock(t, server, set.step)
			turned := time.Now()
			var mutex sync.Mutex
			together(len(limits), func(i int) {
				name := algorithms.Charged()[i].String()
				early, first := other.watch(name, limits[name], turned, window)
				mutex.Lock()
				defer mutex.Unlock()
				again = max(again, first)
				comesBack := 0
				// A bucket refills all the time, and a calendar window ends when the clock says so.
				if name == core.TokenBucket.String() || name == core.CalendarWindow.String() {
					comesBack = most
				}
				if early > most*set.fresh+comesBack {
					t.Errorf("%s: %d let in within a window of the step, want at most %d", name, early, most*set.fresh+comesBack)
				}
				if set.fresh == 0 && first > window+500*time.Millisecond {
					t.Errorf("%s: nobody let in for %v, want one window at most", name, first)
				}
			})
			report(t, set.fault, "at most %d x the limit more in the window after it; somebody let in again after %.1f windows at most",
				set.fresh, again.Seconds()/window.Seconds())
		})
	}
}

// The doctor reads the clock of the server itself.
func TestDoctorOfAClockThatWasSet(t *testing.T) {
	server, turn := startOnClock(t)
	s := limited(t, server, core.Options{Timeout: 30 * time.Second})
	for _, set := range []struct{ by, level, text string }{
		{"+0", "ok", "the clocks agree within a second"},
		{"+3600", "note", "ahead of this machine's"},
		{"-3600", "note", "behind this machine's"},
	} {
		turn(set.by)
		found, err := operate.New(s.limiter).Doctor(t.Context())
		if err != nil || !slices.ContainsFunc(found, func(f operate.Finding) bool {
			return f.Code == "clock" && f.Level == set.level && strings.Contains(f.Text, set.text)
		}) {
			t.Errorf("by %s s: %+v, %v", set.by, found, err)
		}
	}
}

// lasting returns a limit of most permits in a window by every algorithm, by the names of their
// counters.
func lasting(most int, window time.Duration) map[string]core.Limit {
	limits := make(map[string]core.Limit)
	for _, a := range algorithms.Charged() {
		limits[a.String()] = core.Limit{Max: most, Window: window, Algorithm: a}
	}
	return limits
}

// useUp takes all permits that there are.
func (s *service) useUp(name string, limit core.Limit) {
	s.t.Helper()
	counter := s.limiter.MustCounter(name, limit)
	for n := 0; ; n++ {
		d, err := counter.Allow(context.Background(), "hot")
		switch {
		case err != nil:
			s.t.Fatal(err)
		case d.Allowed:
		case n < limit.Max:
			s.t.Fatalf("%s: refused after %d calls: %+v", name, n, d)
		default:
			return
		}
	}
}

// watch makes calls for a window and a half after the clock's step. It returns how many were let in
// during the first window, less a little for delays, and when the first one was let in.
func (s *service) watch(name string, limit core.Limit, turned time.Time, window time.Duration) (early int, first time.Duration) {
	counter := s.limiter.MustCounter(name, limit)
	for time.Since(turned) < window*3/2 {
		d, err := counter.Allow(context.Background(), "hot")
		since := time.Since(turned)
		if err != nil {
			s.t.Error(err)
		}
		if d.Allowed && since < window-500*time.Millisecond {
			early++
		}
		if d.Allowed && first == 0 {
			first = since
		}
		time.Sleep(5 * time.Millisecond)
	}
	if first == 0 {
		first = window * 2 // not in this time
	}
	return early, first
}

// startOnClock starts a server whose clock can be set, by seconds with a sign.
func startOnClock(t *testing.T) (server *redistest.Server, turn func(by string)) {
	t.Helper()
	lent, err := exec.Command("faketime", "-m", "now", "printenv", "LD_PRELOAD").Output()
	if err != nil {
		t.Fatalf(`the program faketime is missing; "make faketime" installs it: %v`, err)
	}
	file := filepath.Join(t.TempDir(), "clock")
	turn = func(by string) {
		next := file + ".next" // renamed, because the server may read the file at any time
		if err := os.WriteFile(next, []byte(by+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(next, file); err != nil {
			t.Fatal(err)
		}
	}
	turn("+0")
	for name, value := range map[string]string{
		// The C library's own malloc comes before jemalloc, which asks for the time before
		// libfaketime is ready to tell it.
		"LD_PRELOAD": strings.TrimSpace(string(lent)) + ":libc.so.6",

		"FAKETIME_TIMESTAMP_FILE": file, "FAKETIME_NO_CACHE": "1",
		"FAKETIME_DONT_FAKE_MONOTONIC": "1", // as on a machine whose clock is set: how long something takes stays what it is
	} {
		t.Setenv(name, value)
	}
	return redistest.Start(t), turn
}

// wantClock checks what time the server believes it is.
func wantClock(t *testing.T, server *redistest.Server, step time.Duration) {
	t.Helper()
	now, err := server.Client(t).Time(context.Background()).Result()
	if err != nil {
		t.Fatal(err)
	}
	if off := time.Until(now) - step; off.Abs() > time.Minute {
		t.Fatalf("the server's clock is off by %v, want %v", time.Until(now), step)
	}
}
