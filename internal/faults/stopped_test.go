package faults_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

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
