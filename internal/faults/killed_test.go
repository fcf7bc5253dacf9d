package faults_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/internal/redistest"
)

const killedFault = "redis-server is killed (-9) and restarted empty, every 2 s for 30 s, FailClosed"

// If a server dies again and again, at most the limit is let in for each of its lives, and the
// service leaks nothing.
func TestServerKilled(t *testing.T) {
	const most = 50
	before := goleak.IgnoreCurrent()
	server := redistest.Start(t)
	s := newService(t, server)
	admitted, restarts, out := s.outlive(most, shortOr(2, 15))
	for name, n := range admitted {
		if n > most*(1+restarts) || n <= most {
			t.Errorf("%s: %d admitted, want more than %d and at most %d, which is a fresh limit after each of %d restarts",
				name, n, most, most*(1+restarts), restarts)
		}
	}
	s.limiter.Close()
	_ = s.client.Close()
	server.Kill()
	goleak.VerifyNone(t, before)
	report(t, killedFault, "%d restarts, at most the limit for each, decided again at most %.1f s after it, no goroutine left", restarts, out.Seconds())
}

// outlive kills and restarts the server this many times while callers call under rules of every
// algorithm and a leased rule, all of which fail closed. It returns the number of calls that each
// rule let in, and the longest time from a restart to the first decided call.
func (s *service) outlive(most, restarts int) (admitted map[string]int, _ int, out time.Duration) {
	var over atomic.Bool
	go func() {
		defer over.Store(true)
		probe := s.direct("probe", core.PerDay(1_000_000))
		for range restarts {
			time.Sleep(shortOr(400*time.Millisecond, 1700*time.Millisecond))
			s.server.Kill()
			time.Sleep(300 * time.Millisecond)
			s.server.Restart()
			back := time.Now()
			soon(s.t, "the limiter decides again", func() bool { return decided(probe(context.Background(), "probe")) })
			out = max(out, time.Since(back))
		}
		time.Sleep(shortOr(400*time.Millisecond, 1500*time.Millisecond))
	}()
	rules := make(map[string]core.Rule)
	for name, limit := range lasting(most, 24*time.Hour) {
		rules[name] = ruleFor(name, limit, core.FailClosed)
	}
	leased := ruleFor("leased", core.Limit{Max: most, Window: 24 * time.Hour}, core.FailClosed)
	leased.Lease = most / 5
	rules["leased"] = leased
	var (
		counts = make(map[string]*atomic.Int64)
		asks   = make(map[string]ask)
	)
	for name, rule := range rules {
		counts[name], asks[name] = new(atomic.Int64), s.guarded(rule)
	}
	together(64, func(int) {
		for !over.Load() {
			for name, ask := range asks {
				if d, _ := ask(context.Background(), "hot"); d.Allowed {
					counts[name].Add(1)
				}
			}
			time.Sleep(time.Millisecond)
		}
	})
	admitted = make(map[string]int)
	for name, n := range counts {
		admitted[name] = int(n.Load())
	}
	return admitted, restarts, out
}
