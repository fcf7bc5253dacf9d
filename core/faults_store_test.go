package core_test

import (
	"bytes"
	"context"
	"errors"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/internal/algorithm"
	"github.com/accesslimit/accesslimit/internal/redistest"
)

// A refusal by the store was taken for a failure of it, and asked again where nothing was counted:
// every limit could be passed.
func TestDenialIsNeverRoutedToTheFallback(t *testing.T) {
	onBothEngines(t, func(t *testing.T, options core.Options, source core.Source) {
		limiter := newLimiter(t, options)
		if source == core.FromRedis {
			core.AskRedis(limiter) // so that no refusal is one that is remembered
		}
		guard := newGuard(t, limiter, core.Rule{Name: "n", Seconds: 3600, MaxCount: 1, OnStoreError: core.FailOpen})
		for i, want := range []int{200, 429, 429, 429} {
			answer := wantStatus(t, guard, newView("GET", "/"), want)
			if i > 0 && (answer.Refusal.Decision.Reason != core.LimitExceeded || answer.Refusal.Decision.Source != source) {
				t.Errorf("%+v", answer.Refusal.Decision)
			}
		}
	})
	// Nor when the store fails for another rule of the same call.
	limiter := newLimiter(t, core.Options{})
	guard := newGuard(t, limiter, core.Rule{Name: "fails", Seconds: 3600}, core.Rule{Name: "refuses", Seconds: 3600})
	core.UseAnswers(limiter, algorithm.Verdict{Err: errors.New("gone")}, algorithm.Verdict{RetryAfter: 1})
	wantStatus(t, guard, newView("GET", "/"), 429)
}

// illRedis are the ways in which a Redis that answers does not count.
var illRedis = map[string]struct {
	args []string
	ruin []any // a command
}{
	"out of memory":         {args: []string{"--maxmemory", "1", "--maxmemory-policy", "noeviction"}},
	"wants a password":      {args: []string{"--requirepass", "secret"}},
	"forbids scripts":       {args: []string{"--rename-command", "EVALSHA", "", "--rename-command", "EVAL", ""}},
	"became a replica":      {ruin: []any{"replicaof", "127.0.0.1", "1"}},
	"holds what is foreign": {ruin: []any{"lpush", core.CounterKey("accesslimit", "ip:192.0.2.1", "n", core.PerHour(5)), "x"}},
}

// An error of the store was told to all callers as 429, or took the service down: a full Redis as a
// panic, a policy of failing open as 500 for the errors that nobody had thought of.
func TestStoreErrorIsNot429(t *testing.T) {
	for name, ill := range illRedis {
		t.Run(name, func(t *testing.T) {
			client := redistest.Start(t, ill.args...).Client(t)
			if ill.ruin != nil {
				if err := client.Do(background, ill.ruin...).Err(); err != nil {
					t.Fatal(err)
				}
			}
			limiter := newLimiter(t, core.Options{Redis: client, Timeout: patient})
			rule := core.Rule{Name: "n", Seconds: 3600}
			wantStatus(t, newGuard(t, limiter, rule), newView("GET", "/"), 200)
			rule.OnStoreError = core.FailClosed
			answer := wantStatus(t, newGuard(t, limiter, rule), newView("GET", "/"), 503)
			if answer.Refusal.Decision.Reason != core.StoreFailClosed {
				t.Errorf("%+v", answer.Refusal.Decision)
			}
			if d, err := limiter.MustCounter("n", core.PerHour(5)).Allow(background, "ip:192.0.2.1"); !errors.Is(err, core.ErrStore) || d.Allowed {
				t.Errorf("a direct call: %+v, %v; want ErrStore", d, err)
			}
		})
	}
}

// wire is a client's connections, whose script calls and dials are counted.
type wire struct{ dials, scripts atomic.Int32 }

func (w *wire) watch(o *redis.Options) {
	o.Dialer = func(ctx context.Context, network, address string) (net.Conn, error) {
		w.dials.Add(1)
		conn, err := new(net.Dialer).DialContext(ctx, network, address)
		return watchedConn{conn, w}, err
	}
}

type watchedConn struct {
	net.Conn
	wire *wire
}

func (c watchedConn) Write(b []byte) (int, error) {
	c.wire.scripts.Add(int32(bytes.Count(b, []byte("evalsha"))))
	return c.Conn.Write(b)
}

// manyLimits is a rule that asks four counters at once.
func manyLimits() core.Rule {
	return core.Rule{
		Name: "n", Seconds: 3600, MaxCount: 20, Also: []core.Limit{core.PerDay(20), core.PerHour(20).Bucket(20)},
		Ban: core.Ban{After: 3, For: time.Hour},
	}
}

// A hanging store was waited for once for each limit and each retry; and the retries, carried out
// when it came back, charged the call as often.
func TestHangingStoreIsAskedOnce(t *testing.T) {
	server, w := redistest.Start(t), new(wire)
	client := server.Client(t, w.watch) // with go-redis's own retries
	unhurried := newGuard(t, newLimiter(t, core.Options{Redis: client, Timeout: patient}), manyLimits())
	hurried := newGuard(t, newLimiter(t, core.Options{Redis: client, Timeout: 200 * time.Millisecond}), manyLimits())
	atOnceBy(8, func(int) bool { return status(unhurried.Check(newView("GET", "/"))) == 200 }) // so that connections are ready
	sent := w.scripts.Load()
	server.Stop()
	wantStatus(t, hurried, newView("GET", "/"), 200)
	server.Continue()
	v := newView("GET", "/")
	wantStatus(t, unhurried, v, 200)
	if got := w.scripts.Load() - sent; got != 2 {
		t.Errorf("%d scripts were sent for two calls", got)
	}
	if told := v.response.Get("RateLimit"); !strings.HasPrefix(told, `"n";r=10;`) && !strings.HasPrefix(told, `"n";r=11;`) {
		t.Errorf("after ten calls of twenty, of which one may be lost: %s", told)
	}
}

// A client's queue for the time of an outage sent its charges later, into a window that they were
// not from; or the limiter stayed open when the store was back.
func TestOutageIsNotCountedAfterwards(t *testing.T) {
	server := redistest.Start(t)
	rule, client := core.Rule{Name: "n", Seconds: 3600, MaxCount: 3}, server.Client(t)
	guard := newGuard(t, newLimiter(t, core.Options{Redis: client, Timeout: patient}), rule)
	hurried := newGuard(t, newLimiter(t, core.Options{Redis: client, Timeout: 20 * time.Millisecond}), rule)
	wantStatus(t, guard, newView("GET", "/"), 200)
	server.Kill()
	for range 10 {
		wantStatus(t, hurried, newView("GET", "/"), 200)
	}
	server.Restart()
	for _, want := range []int{200, 200, 200, 429} {
		wantStatus(t, guard, newView("GET", "/"), want)
	}
}

// A refund whose answer was lost had been carried out, was tried again, and gave back twice.
func TestRefundThatTimedOutIsNotRepeated(t *testing.T) {
	server := redistest.Start(t)
	client := server.Client(t)
	limiter := newLimiter(t, core.Options{Redis: client, Timeout: 500 * time.Millisecond})
	unhurried := newLimiter(t, core.Options{Redis: client, Timeout: patient})
	limit := core.PerHour(10)
	took(t, unhurried, limit, 5)
	d := took(t, limiter, limit, 2)
	server.Stop()
	if err := limiter.Refund(background, d, 2); !errors.Is(err, core.ErrStore) {
		t.Errorf("a refund to a Redis that hangs: %v", err)
	}
	server.Continue()
	var wrong *core.RuleError
	if err := limiter.Refund(background, d, 2); !errors.As(err, &wrong) {
		t.Errorf("the same refund again: %v", err)
	}
	if left, err := peek(unhurried, background, "n", "user:a", limit); err != nil || left.Remaining > 5 {
		t.Errorf("%+v, %v; five are used", left, err)
	}
}

// A check on every idle connection reported an error when there was none, and each call dialled
// anew.
func TestConnectionsAreKept(t *testing.T) {
	w := new(wire)
	client := redistest.Start(t).Client(t, w.watch)
	guard := newGuard(t, newLimiter(t, core.Options{Redis: client, Timeout: patient}), manyLimits())
	for range 9 {
		wantStatus(t, guard, newView("GET", "/"), 200)
	}
	if dials := w.dials.Load(); dials > 2 { // one is for who looks at the server meanwhile
		t.Errorf("%d connections for nine calls one after the other", dials)
	}
}
