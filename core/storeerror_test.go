package core_test

import (
	"context"
	"errors"
	"net"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/accesslimit/accesslimit/core"
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
			if test.status == 503 && (answer.Refusal.Code != 14 || answer.Refusal.Wait <= 0 || len(answer.Refusal.Violated) > 0) {
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
	var log logbook
	options := deadRedis(t)
	options.Logger = log.logger()
	guard := newGuard(t, newLimiter(t, options), closed)
	for range 3 {
		wantStatus(t, guard, newView("GET", "/"), 503)
	}
	if log.count("level=WARN", "rule=closed", "policy=fail_closed", "error=") != 1 || log.count("does not answer") != 1 {
		t.Errorf("want one line with rule, policy and cause, got: %s", log.text.String())
	}
}

// Otherwise a caller could choose its own fail-open.
func TestAnEndedCallerIsNeverLetThrough(t *testing.T) {
	canceled, cancel := context.WithCancel(background)
	cancel()
	late, cancel := context.WithTimeout(background, -1)
	defer cancel()
	engines := map[string]core.Options{
		"memory": {}, "dead redis": deadRedis(t), "redis": {Redis: redistest.Start(t).Client(t), Timeout: patient},
	}
	for engine, options := range engines {
		for ctx, code := range map[context.Context]uint32{canceled: 1, late: 4} {
			var heard decisions
			options.OnDecision = heard.note
			limiter := newLimiter(t, options)
			guard := newGuard(t, limiter, open)
			v := newView("GET", "/")
			v.ctx = ctx
			answer := wantStatus(t, guard, v, 503)
			d := heard.last(t, 1)
			if d.Reason != core.ContextEnded || d.Allowed || d.Source != core.FromNobody || answer.Refusal.Code != code {
				t.Errorf("%s, %v: %+v, code %d", engine, ctx.Err(), d, answer.Refusal.Code)
			}
			if engine != "dead redis" {
				wantLeft(t, limiter, "open", "ip:192.0.2.1", core.PerHour(5), 5)
			}
		}
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
		{"the caller leaves", 20 * time.Millisecond, time.Hour, true, 1},
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

// sending tells before anything is sent.
type sending struct {
	net.Conn
	tell func()
}

func (s sending) Write(b []byte) (int, error) {
	s.tell()
	return s.Conn.Write(b)
}

// The error of a dial that takes too long looks like the end of a context. It is the store's
// failure all the same: the caller's context goes on.
func TestADialThatTakesTooLong(t *testing.T) {
	_, late := (&net.Dialer{Deadline: time.Unix(1, 0)}).Dial("tcp", "127.0.0.1:1")
	client := redis.NewClient(&redis.Options{
		DialerRetries: 1, Dialer: func(context.Context, string, string) (net.Conn, error) { return nil, late },
	})
	defer func() { _ = client.Close() }()
	limiter := newLimiter(t, core.Options{Redis: client})
	_, err := limiter.MustCounter("a", core.PerHour(5)).Allow(t.Context(), "b")
	var failed *core.StoreError
	if !errors.As(err, &failed) || failed.Class != core.StoreUnreachable || errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%T %v", err, err)
	}
	if counted := limiter.Stats().StoreErrors; len(counted) != 1 || counted[0] != (core.StoreErrorCount{Class: core.StoreUnreachable, Count: 1}) {
		t.Errorf("%+v", counted)
	}
}
