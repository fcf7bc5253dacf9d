package faults_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/internal/redistest"
)

const stoppedFault = "redis-server stands still (SIGSTOP) for 5 s, under 256 callers"

// A stopped server delays no call past its deadline. When it continues, it charges no call twice.
func TestServerStandsStill(t *testing.T) {
	server, limit := redistest.Start(t), core.PerDay(10_000_000)
	s := newService(t, server)
	calls := s.under(256, shortOr(20*time.Millisecond, 5*time.Millisecond), limit, func() {
		time.Sleep(300 * time.Millisecond)
		server.Stop()
		time.Sleep(shortOr(1500*time.Millisecond, 5*time.Second))
		server.Continue()
		time.Sleep(500 * time.Millisecond)
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

const lostReplyFault = "a reply is lost after the write"

// A call whose reply is lost costs one permit, and the rule's policy decides it.
func TestReplyLost(t *testing.T) {
	lost := 0
	for name, how := range map[string]toxic{
		"swallowed": {"timeout", "downstream", `"timeout": 0`},
		"closed":    {"limit_data", "downstream", `"bytes": 0`},
		"reset":     {"reset_peer", "downstream", `"timeout": 0`},
	} {
		t.Run(name, func(t *testing.T) { lost += loseReplies(t, how) })
	}
	report(t, lostReplyFault, "%d replies lost, each call charged once", lost)
}

// loseReplies makes calls whose replies are lost, and returns how many.
func loseReplies(t *testing.T, how toxic) int {
	server, limit := redistest.Start(t), core.PerDay(100)
	w := newWire(t, server)
	s := newService(t, server, w.over)
	ways, crowd := s.ways(limit), make([]string, 64)
	firsts := make(map[string]*service) // one for each way, whose breaker no other way opens
	for way := range ways {
		firsts[way] = newService(t, server, w.over)
		for _, of := range []*service{s, firsts[way]} { // loads the script; otherwise a lost reply might be NOSCRIPT
			ask := of.ways(limit)[way]
			soon(t, "the script is loaded", func() bool { return decided(ask(context.Background(), "before")) })
		}
		firsts[way].connect(1)
	}
	s.connect(16)
	w.inject(how)
	for way, first := range firsts { // over an open connection, so it is sent
		d, err := first.ways(limit)[way](context.Background(), "first")
		wantPolicy(t, way, d, err)
	}
	together(len(crowd), func(i int) {
		crowd[i] = fmt.Sprint("crowd", i)
		for way, ask := range ways {
			d, err := ask(context.Background(), crowd[i])
			wantPolicy(t, way, d, err)
		}
	})
	w.restore()
	for _, first := range firsts {
		first.limiter.Close()
		_ = first.client.Close()
	}
	s.rest()
	lost := 0
	for way := range ways {
		if used := charged(t, server, way, limit, []string{"first"})[0]; used != 1 {
			t.Errorf("%s: charged %d, want once", way, used)
		}
		lost++
		for i, used := range charged(t, server, way, limit, crowd) {
			if used > 1 {
				t.Errorf("%s: %s is charged %d", way, crowd[i], used)
			}
			lost += used
		}
	}
	return lost
}
