package adaptertest

import (
	"bytes"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"github.com/accesslimit/accesslimit/core"
)

// setupScenarios are about mistakes in the setup of a service. The log must warn of each once.
var setupScenarios = []scenario{
	{name: "a warning of a proxy that is not trusted", run: warnsOfAProxy},
	{name: "a warning of calls without an address", run: warnsOfNoAddress, needs: UnixSockets},
	{name: "a warning of a rule that knows no route (RoutedView)", run: warnsOfNoRoute},
}

// logbook keeps what is logged.
type logbook struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write implements io.Writer.
func (l *logbook) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(line)
}

// wantWarnings checks how many warnings were logged, and that all contain these words.
func (l *logbook) wantWarnings(t *testing.T, want int, words string) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	warnings, right := 0, 0
	for line := range strings.Lines(l.text.String()) {
		if strings.Contains(line, "level=WARN") {
			warnings++
			if strings.Contains(line, words) {
				right++
			}
		}
	}
	if warnings != want || right != want {
		t.Errorf("%d warnings, %d with %q; want %d in:\n%s", warnings, right, words, want, &l.text)
	}
}

// logged serves an app and keeps its log.
func (s *site) logged(t *testing.T, app App) *logbook {
	t.Helper()
	log := new(logbook)
	app.Limiter = s.limiter(t, func(o *core.Options) { o.Logger = slog.New(slog.NewTextHandler(log, nil)) })
	s.serve(t, app)
	return log
}

func warnsOfAProxy(t *testing.T, s *site) {
	log := s.logged(t, App{Routes: []Route{{Path: "/shop/list", limits: limit(core.Rule{Name: "api", Seconds: 600})}}})
	for range 2 {
		s.want(t, 200, "/shop/list", "X-Forwarded-For: 203.0.113.1")
	}
	log.wantWarnings(t, 1, "peer=127.0.0.1")
}

func warnsOfNoAddress(t *testing.T, s *site) {
	s.network = "unix"
	log := s.logged(t, App{Routes: []Route{{Path: "/shop/list", limits: limit(core.Rule{Name: "api", Seconds: 600})}}})
	for range 2 {
		s.want(t, 200, "/shop/list")
	}
	log.wantWarnings(t, 1, "Options.ClientIP.TrustedProxies")
}

func warnsOfNoRoute(t *testing.T, s *site) {
	log := s.logged(t, App{Use: limit(core.Rule{Seconds: 600}), Routes: []Route{{Path: "/shop/list"}}})
	for range 2 {
		s.want(t, 200, "/shop/list")
	}
	s.want(t, 404, "/unknown/page")
	if !s.adapter.can(RouteInUse) {
		log.wantWarnings(t, 1, "give the rule a Name or Paths")
	} else {
		log.wantWarnings(t, 0, "")
	}
}
