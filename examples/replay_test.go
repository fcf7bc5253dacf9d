package examples_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/replay"
	"github.com/accesslimit/accesslimit/internal/redistest"
	"github.com/accesslimit/accesslimit/nethttplimit"
)

// liveCall is a call that a service behind a proxy decided.
type liveCall struct {
	group      string // calls that share a counter, in one window
	client, n  int    // who made it, and which of their calls it is
	sent, done time.Time
	live, then core.Decision // what the service decided, and what a replay of the log does
}

// replayed are the rules that are compared, each for the paths below its name.
func replayed() (rules []core.Rule) {
	for _, r := range []core.Rule{
		{Name: "hour", Limit: core.PerHour(12)},
		{Name: "login", Limit: core.PerHour(4), Count: func(status int) bool { return status == http.StatusUnauthorized }, Ban: core.Ban{After: 1, For: time.Hour}},
		{Name: "window", Limit: core.Per(5, replayWindow).Aligned()},
		{Name: "all", Limit: core.PerHour(90).Log(), Key: core.Global},
	} {
		r.Paths = []string{"/" + r.Name + "/**"}
		rules = append(rules, r)
	}
	return rules
}

const (
	replayWindow  = 2 * time.Second
	replayClients = 8
	replayRounds  = 20
)

// proxySite is a service behind a proxy, whose calls are noted.
type proxySite struct {
	*site
	log   string // the proxy's
	mu    sync.Mutex
	calls map[string]*liveCall // by path
}

// newProxySite starts a service behind a proxy. config returns the command of the proxy.
func newProxySite(t *testing.T, config func(t *testing.T, dir, address, service string) *exec.Cmd) *proxySite {
	dir := t.TempDir()
	s := &proxySite{site: &site{t: t}, log: filepath.Join(dir, "access.log"), calls: make(map[string]*liveCall)}
	limiter := newLimiter(t, core.Options{
		Redis: redistest.Start(t).Client(t), Timeout: time.Minute, ClientIP: core.ClientIP{TrustedProxies: []string{"127.0.0.1"}},
		OnDecision: func(_ context.Context, e core.Event) {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.calls[e.Path].live = e.Decision
		},
	})
	service := s.serve("tcp", "127.0.0.1:0", nethttplimit.New(limiter, replayed()...)(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/login/") && strings.HasSuffix(r.Header.Get("X-Forwarded-For"), "3") {
			w.WriteHeader(http.StatusUnauthorized)
		}
	})))
	s.run(func(address string) *exec.Cmd { return config(t, dir, address, service.Addr) })
	return s
}

// load makes the calls of all clients: each makes one after the other, and all do so at once. They have
// addresses of their own.
func (s *proxySite) load() {
	var clients sync.WaitGroup
	for client := range replayClients {
		clients.Go(func() {
			from := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, byte(client+2))}}
			caller := &http.Client{Transport: &http.Transport{DialContext: from.DialContext}}
			defer caller.CloseIdleConnections()
			for n := range replayRounds * 4 {
				s.call(caller, client, n)
				time.Sleep(30 * time.Millisecond) // so that there are several windows
			}
		})
	}
	clients.Wait()
}

// call makes a call, and notes when.
func (s *proxySite) call(caller *http.Client, client, n int) {
	rule := replayed()[n%4].Name
	path := fmt.Sprintf("/%s/%d-%d", rule, client, n)
	c := &liveCall{group: fmt.Sprint(rule, client), client: client, n: n / 4, sent: time.Now()}
	if rule == "all" {
		c.group = rule
	}
	s.mu.Lock()
	s.calls[path] = c
	s.mu.Unlock()
	reply, err := caller.Get("http://" + s.address + path)
	if err != nil {
		s.t.Error(err)
		return
	}
	_, _ = io.Copy(io.Discard, reply.Body)
	_ = reply.Body.Close()
	c.done = time.Now()
}

// replay replays a log of the proxy.
func (s *proxySite) replay(log, format string) *replay.Report {
	s.t.Helper()
	var lines []byte
	redistest.WaitUntil(func() bool { // a proxy may write a line after its reply
		lines, _ = os.ReadFile(log)
		return bytes.Count(lines, []byte("\n")) >= len(s.calls)
	}, time.Minute)
	decided := 0
	report, err := replay.Run(s.t.Context(), replay.Options{
		Guards: []replay.Guard{{Rules: replayed()}}, Format: format,
		OnDecision: func(_ time.Time, e core.Event) { decided, s.calls[e.Path].then = decided+1, e.Decision },
	}, replay.Log{Name: log, Reader: bytes.NewReader(lines)})
	if err != nil || decided != len(s.calls) || report.Calls != decided {
		s.t.Fatalf("%d of %d calls: %v, %v", decided, len(s.calls), report, err)
	}
	return report
}

// compare compares what the service decided with the replay, call by call. Calls that were under way at the
// same time by a clock may differ, if as many differ in the opposite way, and those in windows that a call
// crosses are left out. It returns how many calls differ.
func (s *proxySite) compare(clock time.Duration) (differ int) {
	groups, refused := make(map[string][]*liveCall), make(map[core.Reason]int)
	for _, c := range s.calls {
		groups[c.group] = append(groups[c.group], c)
		refused[c.live.Reason]++
	}
	if refused[core.LimitExceeded] == 0 || refused[core.Banned] == 0 || refused[core.Allowed] == 0 || len(refused) > 3 {
		s.t.Errorf("the service decided %v", refused)
	}
	for name, calls := range groups {
		if strings.HasPrefix(name, "window") {
			calls = inWholeWindows(calls, clock)
		}
		for _, c := range calls {
			if c.live.Reason == c.then.Reason && c.live.Key == c.then.Key {
				continue
			}
			differ++
			if !excused(c, calls, max(clock, pausedAtMost)) {
				s.t.Errorf("%s: call %d of %d: %s for %s in the service, and %s for %s in the replay", name, c.n, c.client, c.live.Reason, c.live.Key, c.then.Reason, c.then.Key)
			}
		}
	}
	return differ
}

// pausedAtMost is for how long a busy machine may pause a proxy between the end of a call and the time that
// it writes.
const pausedAtMost = 100 * time.Millisecond

// excused reports whether another call, for which the opposite was decided, was under way at the same time.
func excused(c *liveCall, calls []*liveCall, clock time.Duration) bool {
	for _, other := range calls {
		meet := other.sent.Add(-clock).Before(c.done) && c.sent.Add(-clock).Before(other.done)
		if meet && other.live.Allowed == c.then.Allowed && other.then.Allowed == c.live.Allowed && c.live.Allowed != c.then.Allowed {
			return true
		}
	}
	return false
}

// inWholeWindows returns the calls in those windows where every call is in the same window whenever it
// was decided, by a clock.
func inWholeWindows(calls []*liveCall, clock time.Duration) (whole []*liveCall) {
	window := func(t time.Time) int64 { return t.UnixNano() / int64(replayWindow) }
	torn := make(map[int64]bool)
	for _, c := range calls {
		if first, last := window(c.sent.Add(-clock)), window(c.done.Add(clock)); first != last {
			torn[first], torn[last] = true, true
		}
	}
	for _, c := range calls {
		if !torn[window(c.sent)] {
			whole = append(whole, c)
		}
	}
	return whole
}

// The replay of a proxy's log agrees with what a service behind it decided under load, call by call, but for
// calls closer together than the clock of the log.
func TestReplayAgreesWithALiveService(t *testing.T) {
	t.Run("nginx", func(t *testing.T) {
		s := newProxySite(t, loggingNginx)
		s.load()
		s.replay(s.log, timedFormat)
		t.Logf("by milliseconds, %d of %d calls differ", s.compare(5*time.Millisecond), len(s.calls))
		report := s.replay(s.log+".combined", "")
		t.Logf("by seconds, %d of %d calls differ; %d have the time of the one before", s.compare(time.Second), len(s.calls), report.SameTime)
	})
	t.Run("caddy", func(t *testing.T) {
		s := newProxySite(t, loggingCaddy)
		s.load()
		if report := s.replay(s.log, ""); report.Refused == 0 || report.Logs[0].Format != "caddy" {
			t.Errorf("%v", report)
		}
		t.Logf("%d of %d calls differ", s.compare(5*time.Millisecond), len(s.calls))
	})
}

const timedFormat = `log_format timed '$remote_addr - $remote_user [$time_local] "$request" '
                 '$status $body_bytes_sent $msec $request_time';`

// loggingNginx returns the command of an nginx that writes two logs.
func loggingNginx(t *testing.T, dir, address, service string) *exec.Cmd {
	lines := fmt.Sprintf("location / {\nproxy_pass http://%s;\nproxy_set_header X-Forwarded-For $remote_addr;\n}\naccess_log %s/access.log timed;\naccess_log %[2]s/access.log.combined;\n", service, dir)
	run := nginx(t, dir, lines, address, service, "")
	config := filepath.Join(dir, "config")
	text, err := os.ReadFile(config)
	if err != nil {
		t.Fatal(err)
	}
	written(t, dir, strings.Replace(string(text), "access_log off;", timedFormat, 1))
	return run
}

// loggingCaddy returns the command of a Caddy that writes a log.
func loggingCaddy(t *testing.T, dir, address, service string) *exec.Cmd {
	return caddy(t, dir, fmt.Sprintf("reverse_proxy %s\nlog {\noutput file %s/access.log\n}\n", service, dir), address, service, "")
}
