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
type liveCall struct{ live, then core.Decision } // what the service decided, and what a replay of the log does

// replayed are the rules that are compared, each for the paths below its name.
func replayed() (rules []core.Rule) {
	for _, r := range []core.Rule{
		{Name: "hour", Limit: core.PerHour(12)},
		{Name: "login", Limit: core.PerHour(4), Count: func(status int) bool { return status == http.StatusUnauthorized }, Ban: core.Ban{After: 1, For: time.Hour}},
		{Name: "all", Limit: core.PerHour(90).Log(), Key: core.Global},
	} {
		r.Paths = []string{"/" + r.Name + "/**"}
		rules = append(rules, r)
	}
	return rules
}

const (
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

// load makes the calls of all clients, one after the other. They have addresses of their own.
func (s *proxySite) load() {
	for client := range replayClients {
		from := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, byte(client+2))}}
		caller := &http.Client{Transport: &http.Transport{DialContext: from.DialContext}}
		for n := range replayRounds {
			for _, rule := range replayed() {
				s.call(caller, fmt.Sprintf("/%s/%d-%d", rule.Name, client, n))
			}
		}
		caller.CloseIdleConnections()
	}
}

func (s *proxySite) call(caller *http.Client, path string) {
	s.mu.Lock()
	s.calls[path] = new(liveCall)
	s.mu.Unlock()
	reply, err := caller.Get("http://" + s.address + path)
	if err != nil {
		s.t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, reply.Body)
	_ = reply.Body.Close()
}

// wantSame replays a log of the proxy, and compares what the service decided with the replay, call by call.
func (s *proxySite) wantSame(log, format string) *replay.Report {
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
	refused := make(map[core.Reason]int)
	for path, c := range s.calls {
		refused[c.live.Reason]++
		if c.live.Reason != c.then.Reason || c.live.Key != c.then.Key {
			s.t.Errorf("%s: %s for %s in the service, and %s for %s in the replay", path, c.live.Reason, c.live.Key, c.then.Reason, c.then.Key)
		}
	}
	if refused[core.LimitExceeded] == 0 || refused[core.Banned] == 0 || refused[core.Allowed] == 0 || len(refused) > 3 {
		s.t.Errorf("the service decided %v", refused)
	}
	return report
}

// The replay of a proxy's log agrees with what a service behind it decided, call by call, by the
// milliseconds of a log and by its seconds.
func TestReplayAgreesWithALiveService(t *testing.T) {
	t.Run("nginx", func(t *testing.T) {
		s := newProxySite(t, loggingNginx)
		s.load()
		s.wantSame(s.log, timedFormat)
		s.wantSame(s.log+".combined", "")
	})
	t.Run("caddy", func(t *testing.T) {
		s := newProxySite(t, loggingCaddy)
		s.load()
		if report := s.wantSame(s.log, ""); report.Refused == 0 || report.Logs[0].Format != "caddy" {
			t.Errorf("%v", report)
		}
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
