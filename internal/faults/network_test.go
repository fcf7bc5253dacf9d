package faults_test

import (
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/operate"
	"github.com/accesslimit/accesslimit/internal/redistest"
)

// networkFault is a fault of the network.
type networkFault struct {
	fault  string // the line of the table
	toxics []toxic
	// vanishes is set if new connections are not answered either.
	vanishes bool
	// tolerable is set if every call is decided nevertheless. some is set if some calls are, so the
	// breaker need not open.
	tolerable, some bool
}

var networkFaults = []networkFault{
	{fault: "latency of 30 ms", toxics: []toxic{{"latency", "upstream", `"latency": 30`}}, tolerable: true},
	{fault: "latency of 200 ms", toxics: []toxic{{"latency", "downstream", `"latency": 200`}}},
	{fault: "bandwidth of 10 kB/s", toxics: []toxic{{"bandwidth", "upstream", `"rate": 10`}, {"bandwidth", "downstream", `"rate": 10`}}, some: true},
	{fault: "connections closed mid-pipeline, after 400 bytes of replies", toxics: []toxic{{"limit_data", "downstream", `"bytes": 400`}}, some: true},
	{fault: "connections reset with a call on its way", toxics: []toxic{{"reset_peer", "upstream", `"timeout": 5`}}},
	{fault: "half-open connections: accepted, and never answered", toxics: []toxic{
		{"timeout", "upstream", `"timeout": 0`}, {"timeout", "downstream", `"timeout": 0`},
	}},
	{fault: "the server's host vanishes without a word", toxics: []toxic{
		{"timeout", "upstream", `"timeout": 0`}, {"timeout", "downstream", `"timeout": 0`},
	}, vanishes: true},
}

// The longest times until the breaker opens, and from the recovery until calls are decided again.
const openWithin, closeWithin = time.Second, 2 * time.Second

// holds returns what must hold for this networkFault.
func (s networkFault) holds() string {
	switch {
	case s.tolerable:
		return "every call is decided"
	case s.some:
		return backInTime + "; the breaker closes within 2 s of recovery"
	default:
		return backInTime + "; the breaker opens within 1 s, and closes within 2 s of recovery"
	}
}

// A faulty network delays no call past its deadline, and no call costs two permits. The breaker
// soon opens, and soon closes after the recovery.
func TestNetwork(t *testing.T) {
	if !long() { // what it measures depends on the machine
		return
	}
	for _, s := range networkFaults {
		t.Run(s.fault, func(t *testing.T) {
			s.test(t)
		})
	}
}

func (x networkFault) test(t *testing.T) {
	server, limit := redistest.Start(t), core.PerDay(10_000_000)
	w := newWire(t, server)
	options := core.Options{}
	if x.tolerable {
		options.Timeout = patience // a busy machine may be slower than the network
	}
	s := limited(t, server, options, w.over)
	var opened, closed time.Duration
	calls := s.under(64, 5*time.Millisecond, limit, func() {
		time.Sleep(100 * time.Millisecond)
		opened, closed = x.pass(s, w)
		time.Sleep(100 * time.Millisecond)
	})
	x.wantBreakerInTime(s, opened, closed)
	s.rest()
	calls.wantChargedOnce(s, limit)
	inTime := calls.wantInTime(s)
	switch {
	case x.tolerable:
		calls.wantDecided(t)
		if opened != 0 {
			t.Error("the breaker opened, though every call was answered")
		}
		report(t, x.fault, "%s; all decided", inTime)
	case x.some && opened == 0:
		calls.wantPolicies(t)
		report(t, x.fault, "%s; breaker not opened", inTime)
	default:
		calls.wantPolicies(t)
		report(t, x.fault, "%s; breaker opened after %.2f s, closed %.2f s after recovery", inTime, opened.Seconds(), closed.Seconds())
	}
}

// pass makes the wire faulty and then repairs it. It returns when the breaker opened, or 0, and how
// long after the repair it closed.
func (x networkFault) pass(s *service, w *wire) (opened, closed time.Duration) {
	begin := time.Now()
	w.vanished.Store(x.vanishes)
	w.inject(x.toxics...)
	for time.Since(begin) < 5*time.Second {
		if opened == 0 && s.breaker() != "closed" {
			opened = time.Since(begin)
		}
		time.Sleep(2 * time.Millisecond)
	}
	w.vanished.Store(false)
	w.restore()
	back := time.Now()
	soon(s.t, "the breaker is closed", func() bool { return s.breaker() == "closed" })
	return opened, time.Since(back)
}

// wantBreakerInTime checks when the breaker opened and closed, besides the time that the machine takes to
// wake a timer.
func (x networkFault) wantBreakerInTime(s *service, opened, closed time.Duration) {
	s.t.Helper()
	_, late := tail(s.bare)
	if !x.tolerable && !x.some && (opened == 0 || opened > openWithin+2*late) {
		s.t.Errorf("the breaker opened after %v (0: never), want within %v; a bare timer was %v late", opened, openWithin, late)
	}
	if closed > closeWithin+2*late {
		s.t.Errorf("the breaker was closed %v after recovery, want within %v; a bare timer was %v late", closed, closeWithin, late)
	}
}

// A faulty network is found, and delays the examination by no more than the time that each command has.
func TestDoctorOfFaultyNetworks(t *testing.T) {
	for _, x := range networkFaults {
		t.Run(x.fault, func(t *testing.T) {
			t.Parallel()
			server := redistest.Start(t)
			w := newWire(t, server)
			s := limited(t, server, core.Options{Timeout: 2 * time.Second, Logger: slog.New(slog.DiscardHandler)},
				w.over, func(o *redis.Options) { o.ContextTimeoutEnabled, o.MaxRetries, o.DialerRetries = true, -1, 1 })
			w.inject(x.toxics...)
			found, err := operate.New(s.limiter).Doctor(t.Context())
			if err != nil || !slices.ContainsFunc(found, func(f operate.Finding) bool {
				return slices.Contains([]string{"connection", "latency", "decisions"}, f.Code) && f.Level != "ok" && f.Do != ""
			}) {
				t.Errorf("%+v, %v", found, err)
			}
		})
	}
}
