package examples_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"sync"
	"testing"
	"time"

	"github.com/accesslimit/accesslimit/internal/bounded"
	"github.com/accesslimit/accesslimit/internal/limitertest"
	"github.com/accesslimit/accesslimit/internal/redistest"
)

// wrongClock is a server that allows so many calls a second and announces nothing. It says by a clock
// that is an hour ahead when the next calls are welcome.
type wrongClock struct {
	mu                sync.Mutex
	allowed           int
	second            int64
	calls             int // in this second
	answered, refused int
}

func (s *wrongClock) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now().Add(time.Hour)
	w.Header().Set("Date", now.UTC().Format(http.TimeFormat))
	if s.second != now.Unix() {
		s.second, s.calls = now.Unix(), 0
	}
	if s.calls++; s.calls <= s.allowed {
		s.answered++
		return
	}
	s.refused++
	w.Header().Set("Retry-After", now.Add(time.Second).UTC().Format(http.TimeFormat))
	w.WriteHeader(http.StatusTooManyRequests)
}

func (s *wrongClock) allow(calls int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.allowed = calls
}

func (s *wrongClock) counts() (answered, refused int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.answered, s.refused
}

// Calls go on after each fault: a process is killed, Redis hangs, loses its memory, and the server
// allows less, while its clock is wrong.
func TestOutgoingUnderFaults(t *testing.T) {
	s, rdb := &wrongClock{allowed: 200}, redistest.Start(t)
	server := httptest.NewServer(s)
	bounded.Cleanup(t, server.Close)
	var processes []*exec.Cmd
	for range 3 {
		c := command("outgoing", "REDIS_URL=redis://"+rdb.Addr(), "REDIS_TIMEOUT=1s")
		c.Args, c.Stderr = append(c.Args, "-server", server.URL), io.Discard
		input, err := c.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		bounded.Cleanup(t, func() {
			_ = input.Close()
			_ = bounded.Wait(c)
		})
		processes = append(processes, c)
	}
	for _, fault := range []struct {
		name   string
		do     func()
		expect float64 // calls a second in the end; 0: any number
	}{
		{"none", func() {}, 97},
		{"a process is killed", func() { _ = processes[0].Process.Kill() }, 97},
		{"Redis hangs", rdb.Stop, 0},
		{"Redis is back", rdb.Continue, 90},
		{"Redis loses its memory", func() { rdb.Kill(); rdb.Restart() }, 97},
		{"the server allows less", func() { s.allow(20) }, 0},
		{"the server allows more", func() { s.allow(200) }, 0},
		{"nothing more", func() {}, 97},
	} {
		fault.do()
		before, refused := s.counts()
		limitertest.Eventually(t, "calls are answered: "+fault.name, func() bool {
			answered, _ := s.counts()
			return answered >= before+30
		})
		if isLong {
			wantRate(t, s, fault.name, fault.expect)
		}
		_, after := s.counts()
		t.Logf("%s: %d calls were refused", fault.name, after-refused)
	}
}

// wantRate checks how many calls a second are answered in 75 seconds.
func wantRate(t *testing.T, s *wrongClock, during string, want float64) {
	t.Helper()
	const seconds = 75
	before, _ := s.counts()
	time.Sleep(seconds * time.Second)
	after, _ := s.counts()
	got := float64(after-before) / seconds
	t.Logf("%s: %.1f calls a second were answered", during, got)
	if got < 0.95*want {
		t.Errorf("%s: want %v calls a second", during, want)
	}
}
