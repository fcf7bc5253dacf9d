package core_test

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/internal/algorithm"
	"github.com/accesslimit/accesslimit/internal/logtest"
	"github.com/accesslimit/accesslimit/internal/redistest"
)

var (
	open   = core.Rule{Name: "open", Seconds: 3600}
	closed = core.Rule{Name: "closed", Seconds: 3600, OnStoreError: core.FailClosed}
)

func TestOnStoreError(t *testing.T) {
	for _, test := range []struct {
		name   string
		rules  []core.Rule
		status int
		reason core.Reason
		rule   string
	}{
		{"open", []core.Rule{open}, 200, core.StoreFailOpen, "open"},
		{"closed", []core.Rule{closed}, 503, core.StoreFailClosed, "closed"},
		{"one no is a no", []core.Rule{open, closed}, 503, core.StoreFailClosed, "closed"},
	} {
		t.Run(test.name, func(t *testing.T) {
			var heard decisions
			options := deadRedis(t)
			options.OnDecision, options.Expose = heard.note, true
			v := newView("GET", "/")
			answer := wantStatus(t, newGuard(t, newLimiter(t, options), test.rules...), v, test.status)
			d := heard.last(t, 1)
			if d.Allowed != (test.status == 200) || d.Reason != test.reason || d.Rule != test.rule || d.Source != core.FromNobody {
				t.Errorf("%+v", d)
			}
			if d.Key != "ip:192.0.2.1" || d.Limit != core.PerHour(5) || d.RetryAfter != 0 || d.Remaining != 0 {
				t.Errorf("%+v", d)
			}
			if len(v.response) > 0 {
				t.Errorf("headers about a limit that nobody counted: %v", v.response)
			}
			if test.status == 503 && (answer.Refusal.Code != 14 || answer.Refusal.RetryAfter <= 0 || len(answer.Refusal.Violated) > 0) {
				t.Errorf("%+v", answer.Refusal)
			}
			if test.status == 200 {
				if exposed, ok := core.DecisionFrom(answer.Context); !ok || exposed.Reason != core.StoreFailOpen {
					t.Errorf("the handler sees %+v", exposed)
				}
			}
		})
	}
}

func TestAStoreThatFailsIsLoggedOnce(t *testing.T) {
	var log logtest.Log
	options := deadRedis(t)
	options.Logger = log.Logger()
	guard := newGuard(t, newLimiter(t, options), closed)
	for range 3 {
		wantStatus(t, guard, newView("GET", "/"), 503)
	}
	if log.Count("level=WARN", "rule=closed", "policy=fail_closed", "error=") != 1 || log.Count("does not answer") != 1 {
		t.Errorf("want one line with rule, policy and cause, got: %s", log.String())
	}
}

// The server hangs. A caller who gives up meanwhile, by leaving or by its own deadline, is not a
// failure of the store.
func TestACallerWhoLeavesAHangingRedis(t *testing.T) {
	server := redistest.Start(t)
	server.Stop()
	defer server.Continue()
	for _, test := range []struct {
		name     string
		timeout  time.Duration // ours
		deadline time.Duration // the caller's
		leaves   bool          // as soon as anything was sent
		code     uint32
	}{
		{"the caller leaves", 2 * time.Second, time.Hour, true, 1}, // long enough to send the call on a busy machine
		{"the caller's deadline passes", patient, 20 * time.Millisecond, false, 4},
	} {
		t.Run(test.name, func(t *testing.T) {
			v := newView("GET", "/")
			ctx, leave := context.WithTimeout(background, test.deadline)
			defer leave()
			v.ctx = ctx
			client := server.Client(t, func(o *redis.Options) {
				o.Dialer = func(_ context.Context, network, address string) (net.Conn, error) {
					conn, err := net.Dial(network, address)
					return sending{conn, func() {
						if test.leaves {
							leave()
						}
					}}, err
				}
			})
			guard := newGuard(t, newLimiter(t, core.Options{Redis: client, Timeout: test.timeout}), open)
			answer := wantStatus(t, guard, v, 503)
			if answer.Refusal.Decision.Reason != core.ContextEnded || answer.Refusal.Code != test.code {
				t.Errorf("%+v", answer.Refusal)
			}
		})
	}
}

// sending is a client that calls a function before anything is sent.
type sending struct {
	net.Conn
	tell func()
}

func (s sending) Write(b []byte) (int, error) {
	s.tell()
	return s.Conn.Write(b)
}

// illRedis holds ways in which a Redis answers but does not count.
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

// An error of the store became a 429 for all callers, or took the service down: with a full Redis,
// as a panic; with fail-open, as a 500 for errors that nobody had thought of.
func TestStoreErrorIsNot429(t *testing.T) {
	for name, ill := range illRedis {
		t.Run(name, func(t *testing.T) {
			client := redistest.Start(t, ill.args...).Client(t)
			if ill.ruin != nil {
				if err := client.Do(background, ill.ruin...).Err(); err != nil {
					t.Fatal(err)
				}
			}
			var log logtest.Log
			limiter := newLimiter(t, core.Options{Redis: client, Timeout: patient, Logger: log.Logger()})
			rule := core.Rule{Name: "n", Seconds: 3600}
			wantStatus(t, newGuard(t, limiter, rule), newView("GET", "/"), 200)
			rule.OnStoreError = core.FailClosed
			answer := wantStatus(t, newGuard(t, limiter, rule), newView("GET", "/"), 503)
			if answer.Refusal.Decision.Reason != core.StoreFailClosed {
				t.Errorf("%+v", answer.Refusal.Decision)
			}
			if d, err := limiter.MustCounter("n", core.PerHour(5)).Allow(background, "ip:192.0.2.1"); !errors.Is(err, core.ErrStore) || d.Allowed {
				t.Errorf("a direct call: %+v, %v; want ErrStore", d, err)
			} else if !strings.Contains(err.Error(), "the store answered with an error") || log.Count("not answer") > 0 {
				t.Errorf("Redis did answer: %v, %s", err, log.String())
			}
		})
	}
}

// A context that ends while the store is asked is an end of the caller's context, too.
func TestDirectCallsWhoseCallerLeaves(t *testing.T) {
	limiter := newLimiter(t, core.Options{})
	core.UseAnswers(limiter, algorithm.Verdict{Ended: context.Canceled})
	if d, err := limiter.MustCounter("n", core.PerHour(5)).Allow(background, "s"); !errors.Is(err, context.Canceled) || errors.Is(err, core.ErrStore) || d.Allowed {
		t.Errorf("%+v, %v", d, err)
	}
}
