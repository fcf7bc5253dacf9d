package faults_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/operate"
	"github.com/accesslimit/accesslimit/internal/redistest"
)

const stoppedFault = "redis-server stands still (SIGSTOP) for 5 s, under 256 callers"

// A stopped server delays no call past its deadline. When it continues, it charges no call twice.
func TestServerStandsStill(t *testing.T) {
	server, limit := redistest.Start(t), core.PerDay(10_000_000)
	s := newService(t, server)
	calls := s.under(256, shortOr(20*time.Millisecond, 5*time.Millisecond), limit, func() {
		soon(t, "calls are decided", func() bool { return s.limiter.Stats().Calls > 1000 })
		server.Stop()
		soon(t, "the breaker is open", func() bool { return s.breaker() == "open" })
		time.Sleep(shortOr(0, 5*time.Second))
		server.Continue()
		soon(t, "the breaker is closed", func() bool { return s.breaker() == "closed" })
	})
	s.rest()
	calls.wantChargedOnce(s, limit)
	calls.wantPolicies(t)
	report(t, stoppedFault, "%s", calls.wantInTime(s))
}

// A caller who leaves before the call is sent is never charged, however late the server continues.
func TestCallerLeavesBeforeTheCallIsSent(t *testing.T) {
	server, limit := redistest.Start(t), core.PerDay(100)
	s := limited(t, server, core.Options{Timeout: patience})
	ask := s.direct("direct", limit)
	server.Stop()
	var early sync.WaitGroup
	early.Go(func() { // these take every connection, so later calls must wait for one
		together(64, func(i int) {
			if d, err := ask(context.Background(), fmt.Sprint("early", i)); err != nil || !d.Allowed {
				t.Errorf("%+v, %v; want it allowed when the server goes on", d, err)
			}
		})
	})
	soon(t, "the early are on their way", func() bool { return s.client.PoolStats().TotalConns >= 8 })
	gone := make([]string, 256)
	together(len(gone), func(i int) {
		gone[i] = fmt.Sprint("gone", i)
		ctx, leave := context.WithTimeout(context.Background(), timeout/2)
		defer leave()
		if _, err := ask(ctx, gone[i]); err != context.DeadlineExceeded {
			t.Errorf("%v, want %v", err, context.DeadlineExceeded)
		}
	})
	server.Continue()
	early.Wait()
	s.rest()
	for i, used := range charged(t, server, "direct", limit, gone) {
		if used != 0 {
			t.Errorf("%s: charged %d", gone[i], used)
		}
	}
}

const killedFault = "redis-server is killed (-9) and restarted empty, every 2 s for 30 s, FailClosed"

// If a server dies again and again, at most the limit is let in for each of its lives, nobody whom an
// operator has blocked or banned is, also by a rule that fails open, and the service leaks nothing.
func TestServerKilled(t *testing.T) {
	const most = 50
	before := goleak.IgnoreCurrent()
	server := redistest.Start(t)
	s := newService(t, server)
	admitted, restarts, out := s.outlive(most, shortOr(2, 15))
	if n := admitted["marked"]; n > 0 {
		t.Errorf("the blocked and the banned were let in %d times", n)
	}
	for name, n := range admitted {
		if n > most*(1+restarts) {
			t.Errorf("%s: %d admitted, want at most %d, which is a fresh limit after each of %d restarts", name, n, most*(1+restarts), restarts)
		}
	}
	s.limiter.Close()
	_ = s.client.Close()
	server.Kill()
	goleak.VerifyNone(t, before)
	report(t, killedFault, "%d restarts, at most the limit for each, decided again at most %.1f s after it, no goroutine left", restarts, out.Seconds())
}

// outlive kills and restarts the server this many times while callers call under rules of every
// algorithm and a leased rule, all of which fail closed, and marked callers under one that fails open.
// It returns the number of calls that each rule let in, and the longest time from a restart to the
// first decided call.
func (s *service) outlive(most, restarts int) (admitted map[string]int, _ int, out time.Duration) {
	rules := make(map[string]core.Rule)
	for name, limit := range lasting(most, 24*time.Hour) {
		rules[name] = ruleFor(name, limit, core.FailClosed)
	}
	leased := ruleFor("leased", core.Limit{Max: most, Window: 24 * time.Hour}, core.FailClosed)
	leased.Lease = most / 5
	rules["leased"] = leased
	var (
		over   atomic.Bool
		counts = make(map[string]*atomic.Int64)
		usedUp = make(map[string]*atomic.Int64) // refusals by Redis
		asks   = make(map[string]ask)
	)
	for name, rule := range rules {
		counts[name], usedUp[name], asks[name] = new(atomic.Int64), new(atomic.Int64), s.guarded(rule)
	}
	marked, open := s.marked()
	counts["marked"] = new(atomic.Int64)
	go func() {
		defer over.Store(true)
		probe := s.direct("probe", core.PerDay(1_000_000))
		for life := range restarts + 1 {
			for name, n := range usedUp {
				before := n.Load()
				soon(s.t, name+" is used up", func() bool { return n.Load() > before })
			}
			if life == restarts {
				return
			}
			s.server.Kill()
			soon(s.t, "calls fail", func() bool { return s.breaker() == "open" })
			s.server.Restart()
			back := time.Now()
			soon(s.t, "the limiter decides again", func() bool { return decided(probe(context.Background(), "probe")) })
			out = max(out, time.Since(back))
		}
	}()
	together(64, func(int) {
		for !over.Load() {
			for _, subject := range marked {
				if d, _ := open(context.Background(), subject); d.Allowed {
					counts["marked"].Add(1)
				}
			}
			for name, ask := range asks {
				switch d, _ := ask(context.Background(), "hot"); {
				case d.Allowed:
					counts[name].Add(1)
				case d.Reason == core.LimitExceeded && d.Source == core.FromRedis:
					usedUp[name].Add(1)
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

// marked blocks a subject and bans another, under a rule that fails open.
func (s *service) marked() (subjects []string, open ask) {
	s.t.Helper()
	open = s.guarded(ruleFor("marked", core.PerDay(10_000_000), core.FailOpen))
	operator := operate.New(s.limiter)
	overrides, err := operator.Overrides("marked")
	if err == nil {
		err = overrides.Set(context.Background(), "blocked", operate.Override{Blocked: true})
	}
	if _, err2 := operator.Ban(context.Background(), "marked", "banned", time.Hour); errors.Join(err, err2) != nil {
		s.t.Fatal(err, err2)
	}
	return []string{"blocked", "banned"}, open
}
