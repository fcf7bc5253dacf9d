package adaptertest

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/limittest"
	"github.com/accesslimit/accesslimit/internal/bounded"
)

// failureScenarios are about stores that do not answer and callers who have left.
var failureScenarios = []scenario{
	{name: "store down: FailOpen lets pass", run: failOpen},
	{name: "store down: FailClosed refuses", run: failClosed},
	{name: "store down: one refusal suffices", run: failMixed},
	{name: "a store that hangs delays a call by its timeout", run: hangingStore},
	{name: "a caller who has left is not let through by FailOpen", run: callerLeft},
}

// broken serves a route whose store does not answer, and returns the last decision.
func (s *site) broken(t *testing.T, client redis.UniversalClient, rules ...core.Rule) (last *atomic.Value) {
	t.Helper()
	last = new(atomic.Value)
	limiter := s.limiter(t, func(o *core.Options) {
		o.Redis, o.Timeout = client, 200*time.Millisecond
		o.OnDecision = func(_ context.Context, e core.Event) {
			d := e.Decision
			last.Store(d)
		}
	})
	s.serve(t, App{Limiter: limiter, Routes: []Route{{Path: "/shop/list", limits: limit(rules...)}}})
	return last
}

func wantReason(t *testing.T, last *atomic.Value, reason core.Reason) {
	t.Helper()
	if d := last.Load().(core.Decision); d.Reason != reason || d.Source != core.FromNobody {
		t.Errorf("the decision is %+v, want reason %s", d, reason)
	}
}

func failOpen(t *testing.T, s *site) {
	last := s.broken(t, limittest.NoRedis(t), core.Rule{Seconds: 600, MaxCount: 1})
	for range 3 {
		reply := s.want(t, 200, "/shop/list")
		wantHeader(t, reply, "Ratelimit", "") // the count is unknown
	}
	wantReason(t, last, core.StoreFailOpen)
}

func failClosed(t *testing.T, s *site) {
	last := s.broken(t, limittest.NoRedis(t), core.Rule{Seconds: 600, MaxCount: 1, OnStoreError: core.FailClosed})
	reply := s.want(t, 503, "/shop/list")
	wantHeader(t, reply, "Retry-After", "1")
	wantReason(t, last, core.StoreFailClosed)
}

func failMixed(t *testing.T, s *site) {
	last := s.broken(t, limittest.NoRedis(t), core.Rule{Name: "open", Seconds: 600},
		core.Rule{Name: "closed", Seconds: 600, OnStoreError: core.FailClosed})
	s.want(t, 503, "/shop/list")
	wantReason(t, last, core.StoreFailClosed)
}

func hangingStore(t *testing.T, s *site) {
	server := limittest.StartRedis(t)
	client := redis.NewClient(&redis.Options{Addr: server.Addr(), ReadTimeout: time.Hour})
	bounded.Cleanup(t, func() { _ = client.Close() })
	last := s.broken(t, client, core.Rule{Seconds: 600, MaxCount: 1})
	s.want(t, 200, "/shop/list") // an open connection makes it the harder case
	server.Stop()
	defer server.Continue()
	s.want(t, 200, "/shop/list") // well before the client would give up
	wantReason(t, last, core.StoreFailOpen)
}

func callerLeft(t *testing.T, s *site) {
	var ran atomic.Int32
	limiter := s.limiter(t, func(o *core.Options) {
		if s.client != nil {
			o.Redis = limittest.NoRedis(t)
		}
	})
	s.serve(t, App{
		Limiter: limiter,
		Before: func(ctx context.Context) context.Context {
			ended, cancel := context.WithCancel(ctx)
			cancel()
			return ended
		},
		Routes: []Route{{
			Path: "/shop/list", limits: limit(core.Rule{Seconds: 600}),
			Handle: func(h Handling) { ran.Add(1); h.Text("ok") },
		}},
	})
	s.want(t, 503, "/shop/list")
	if ran.Load() != 0 {
		t.Error("the handler ran for a caller who had left")
	}
}
