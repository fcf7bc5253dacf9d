package core_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/internal/redistest"
)

// estimating is a rule whose calls are charged an estimate.
func estimating(name string, limit core.Limit, estimate int) core.Rule {
	return core.Rule{Name: name, Limit: limit, Estimate: cost(estimate)}
}

// handled makes a call of a guard, whose handler receives its context. It returns what the handler
// returned.
func handled(t testing.TB, guard *core.Guard, handle func(ctx context.Context) error) (err error) {
	t.Helper()
	v := newView("GET", "/")
	answer := wantStatus(t, guard, v, ok)
	if answer.Context != nil {
		v.Ctx = answer.Context
	}
	answer.Run(func() int {
		err = handle(v.Ctx)
		return ok
	})
	return err
}

// wantSettled makes a call that is settled at what was used.
func wantSettled(t testing.TB, guard *core.Guard, rule string, used int, want error) {
	t.Helper()
	if err := handled(t, guard, func(ctx context.Context) error { return core.Settle(ctx, core.Costs{rule: used}) }); !errors.Is(err, want) {
		t.Errorf("settled at %d: %v, want %v", used, err, want)
	}
}

// Each rule is settled by its name, also those of a middleware around another one, and each once. The
// error for any other name says which there are.
func TestEachRuleIsSettledByItsName(t *testing.T) {
	limiter := newLimiter(t, core.Options{Expose: true})
	hour := core.PerHour(100)
	outer := newGuard(t, limiter, estimating("outer", hour, 5))
	inner := newGuard(t, limiter, estimating("inner", hour, 7), core.Rule{Name: "plain", Limit: hour}, core.Rule{Limit: hour, Estimate: cost(1)})
	err := handled(t, outer, func(ctx context.Context) error {
		d, _ := core.DecisionFrom(ctx)
		wantNoRefund(t, limiter, d, 1, "1") // in place of a settlement
		v := newView("GET", "/ask").In(ctx)
		answer := wantStatus(t, inner, v, ok)
		answer.Run(func() int {
			for _, rule := range []string{"outer", "inner", "GET /ask"} {
				if err := core.Settle(answer.Context, core.Costs{rule: 2}); err != nil {
					t.Error(err)
				}
			}
			if err := core.Settle(answer.Context, core.Costs{"outer": 2}); err != nil { // as before
				t.Error(err)
			}
			if err := core.Settle(answer.Context, core.Costs{"outer": 3}); !errors.Is(err, core.ErrBillSettled) || !strings.HasSuffix(err.Error(), "at 2") {
				t.Errorf("settled twice: %v", err)
			}
			err := core.Settle(answer.Context, core.Costs{"plain": 2})
			wantRuleError(t, err, "", "rule", "plain")
			if err == nil || !strings.HasSuffix(err.Error(), ": inner, GET /ask, outer") {
				t.Errorf("the error does not say what can be settled: %v", err)
			}
			if d, ok := core.DecisionFrom(answer.Context); !ok || d.Rule == "" {
				t.Error("the decision is lost")
			}
			return ok
		})
		return core.Settle(answer.Context, core.Costs{"inner": 2})
	})
	if !errors.Is(err, core.ErrBillUnknown) {
		t.Errorf("settled when the inner call has ended: %v", err)
	}
	for name, left := range map[string]int{"outer": 98, "inner": 98, "GET /ask": 98, "plain": 99} {
		wantLeft(t, limiter, name, me, hour, left)
	}
	wantRuleError(t, core.Settle(background, core.Costs{"outer": 1}), "", "rule", "outer")
	wantRuleError(t, core.Settle(background, core.Costs{"outer": -1}), "outer", "used", "-1")
}

// Calls that no counter charged have nothing to settle.
func TestNothingToSettle(t *testing.T) {
	hour, plan := core.PerHour(5), func(core.Request) (string, error) { return "free", nil }
	for name, change := range map[string]func(*core.Rule){
		"costs nothing":    func(r *core.Rule) { r.Estimate = cost(0) },
		"skipped":          func(r *core.Rule) { r.Skip = always },
		"unlimited":        func(r *core.Rule) { r.Plan, r.Plans = plan, map[string]core.Limit{"free": core.Unlimited} },
		"too much for now": func(r *core.Rule) { r.Mode, r.Estimate = core.Soft, cost(6) },
		"only tried":       func(r *core.Rule) { r.Mode, r.Estimate = core.DryRun, cost(6) },
		"tried for free":   func(r *core.Rule) { r.Mode, r.Estimate = core.DryRun, cost(0) },
	} {
		t.Run(name, func(t *testing.T) {
			limiter, rule := newLimiter(t, core.Options{}), estimating("n", hour, 2)
			change(&rule)
			wantSettled(t, newGuard(t, limiter, rule), "n", 4, nil)
			wantLeft(t, limiter, "n", me, hour, 5)
		})
	}
	rule := estimating("n", hour, 2)
	rule.Mode, rule.NeedLogin = core.Soft, true
	wantSettled(t, newGuard(t, newLimiter(t, core.Options{Identify: core.ContextValue("user")}), rule), "n", 4, nil)
	rule = estimating("n", hour, 2)
	wantSettled(t, newGuard(t, newLimiter(t, deadRedis(t)), rule), "n", 4, nil) // FailOpen
	rule.OnStoreError = core.CountLocally(1)
	guard := newGuard(t, newLimiter(t, deadRedis(t)), rule)
	wantSettled(t, guard, "n", 1, nil)
	wantSettled(t, guard, "n", 4, nil)
	wantStatus(t, guard, newView("GET", "/"), 429)
}

func always(core.Request) bool { return true }

// A rule that ignores a call leaves nothing to settle either beside other rules, or in a Check. The rule
// of this name in a middleware around keeps its estimate then.
func TestNothingToSettleOfASkippedRule(t *testing.T) {
	hour, limiter := core.PerHour(5), newLimiter(t, core.Options{})
	skipped := estimating("n", hour, 2)
	skipped.Skip = always
	for _, others := range [][]core.Rule{{{Name: "plain", Limit: hour}}, {estimating("other", hour, 1)}, {estimating("n", hour, 1)}} {
		wantSettled(t, newGuard(t, limiter, append(others, skipped)...), "n", 4, nil)
	}
	wantLeft(t, limiter, "n", me, hour, 1) // the last one was not skipped
	outer, check := newGuard(t, limiter, estimating("n", hour, 1)), limiter.MustCheck(skipped)
	err := handled(t, outer, func(ctx context.Context) error {
		ctx, _ = check.WithEstimates(ctx, map[string]int{"n": 3})
		if got := status(check.Allow(newView("GET", "/").In(ctx), me)); got != ok {
			t.Errorf("status %d", got)
		}
		return core.Settle(ctx, core.Costs{"n": 3})
	})
	if err != nil {
		t.Error(err)
	}
	wantLeft(t, limiter, "n", me, hour, 0)
}

// A call stays on the counters that it was charged to, whatever plan or override holds later.
func TestACallIsSettledWhereItWasCharged(t *testing.T) {
	onBothEngines(t, func(t *testing.T, options core.Options, _ core.Source) {
		limiter, plan := newLimiter(t, options), ""
		rule := estimating("n", core.PerHour(10), 8)
		rule.Plan = func(core.Request) (string, error) { return plan, nil }
		rule.Plans = map[string]core.Limit{"pro": core.PerHour(20)}
		guard, o := newGuard(t, limiter, rule), operator{t, limiter, "n", core.PerHour(10), nil}
		err := handled(t, guard, func(ctx context.Context) error {
			plan = "pro"
			o.block(me, time.Time{})
			return core.Settle(ctx, core.Costs{"n": 13})
		})
		if err != nil {
			t.Error(err)
		}
		o.max(me, 30)
		wantLeft(t, limiter, "n", me, core.PerHour(20), 17) // of the override
		err = handled(t, guard, func(ctx context.Context) error {
			o.remove(me)
			return core.Settle(ctx, core.Costs{"n": 2})
		})
		if err != nil {
			t.Error(err)
		}
		wantLeft(t, limiter, "n", me, core.PerHour(20), 5)
	})
}

// Rules that share a counter charge it once, and settle it once. The charge of a rule without an estimate
// stays.
func TestSettleOfRulesThatShareACounter(t *testing.T) {
	plain, estimate := core.Rule{Name: "n", Limit: core.PerHour(20), Cost: cost(3)}, estimating("n", core.PerHour(20), 6)
	onBothEngines(t, func(t *testing.T, options core.Options, _ core.Source) {
		for i, rules := range [][]core.Rule{{plain, estimate}, {estimate, plain}, {estimate, estimate}} {
			stays := []int{3, 3, 0}[i]
			limiter := newLimiter(t, options)
			if _, err := resetOf(limiter, background, "n", me, core.PerHour(20)); err != nil {
				t.Fatal(err)
			}
			guard, left := newGuard(t, limiter, rules...), 20
			for _, used := range []int{0, 2, 4, 8} {
				wantSettled(t, guard, "n", used, nil)
				left -= max(used, stays)
				wantLeft(t, limiter, "n", me, core.PerHour(20), left)
			}
		}
	})
}

// If a function of the service panics after the charge, the call is over: what counts stays charged,
// and the rest is given back.
func TestAPanicAfterAnEstimate(t *testing.T) {
	limiter := newLimiter(t, core.Options{OnDecision: func(context.Context, core.Event) { panic("of the service") }})
	uncounted := estimating("uncounted", core.PerHour(10), 4)
	uncounted.Count = is(200)
	guard := newGuard(t, limiter, estimating("counted", core.PerHour(10), 4), uncounted)
	wantPanic(t, "of the service", func() { guard.Check(newView("GET", "/")) })
	for name, left := range map[string]int{"counted": 6, "uncounted": 10} {
		d, err := limiter.MustCounter(name, core.PerHour(10)).Peek(background, me)
		if err != nil || d.Remaining != left {
			t.Errorf("%s: %d are left, want %d: %v", name, d.Remaining, left, err)
		}
	}
}

// A rule that a Check has not charged is not looked for in the middleware around it, whose rule of the
// same name was charged for something else.
func TestSettleOfACheckThatChargedNothing(t *testing.T) {
	limiter, hour := newLimiter(t, core.Options{}), core.PerHour(100)
	guard, check := newGuard(t, limiter, estimating("tokens", hour, 5)), limiter.MustCheck(estimating("tokens", hour, 1))
	err := handled(t, guard, func(outer context.Context) error {
		ctx, err := check.WithEstimates(outer, map[string]int{"tokens": 96})
		if err != nil {
			t.Fatal(err)
		}
		wantRuleError(t, core.Settle(ctx, core.Costs{"tokens": 50}), "", "rule", "tokens") // not asked yet
		if got := status(check.Allow(newView("GET", "/").In(ctx), me)); got != 429 {
			t.Errorf("status %d, want 429", got)
		}
		wantRuleError(t, core.Settle(ctx, core.Costs{"tokens": 50}), "", "rule", "tokens")
		wantLeft(t, limiter, "tokens", me, hour, 95)
		return core.Settle(outer, core.Costs{"tokens": 7})
	})
	if err != nil {
		t.Error(err)
	}
	wantLeft(t, limiter, "tokens", me, hour, 93)
}

// The estimates of one check are not those of another one whose rule has the same name, and each is
// settled in its own context.
func TestEstimatesOfTwoChecksWithOneName(t *testing.T) {
	limiter, hour := newLimiter(t, core.Options{}), core.PerHour(100)
	first, second := limiter.MustCheck(estimating("tokens", hour, 1)), limiter.MustCheck(estimating("tokens", hour, 2))
	ofFirst, err := first.WithEstimates(background, map[string]int{"tokens": 10})
	ofSecond, err2 := second.WithEstimates(ofFirst, nil)
	for i, check := range []*core.Check{second, first} {
		if got := status(check.Allow(newView("GET", "/").In(ofSecond), me)); got != 200 {
			t.Fatalf("status %d", got)
		}
		wantLeft(t, limiter, "tokens", me, hour, []int{98, 88}[i])
	}
	if err := errors.Join(err, err2, core.Settle(ofSecond, core.Costs{"tokens": 5}), core.Settle(ofFirst, core.Costs{"tokens": 20})); err != nil {
		t.Error(err)
	}
	wantLeft(t, limiter, "tokens", me, hour, 75)
}

// reused is a context that a framework uses again for its next call.
type reused struct{ context.Context }

// Settling in the context of a call that has ended changes nothing of the next call, whose context the
// framework has made of the same memory.
func TestSettleInAContextThatIsUsedAgain(t *testing.T) {
	limiter, hour := newLimiter(t, core.Options{}), core.PerHour(100)
	outer, inner := newGuard(t, limiter, estimating("outer", hour, 5)), newGuard(t, limiter, estimating("inner", hour, 7))
	shared, late := &reused{background}, context.Context(nil)
	_ = handled(t, outer, func(ctx context.Context) error {
		shared.Context = ctx
		answer := wantStatus(t, inner, newView("GET", "/").In(shared), ok)
		late = answer.Context
		answer.Run(func() int { return ok })
		return nil
	})
	_ = handled(t, outer, func(ctx context.Context) error {
		shared.Context = ctx
		if err := core.Settle(late, core.Costs{"outer": 50}); !errors.Is(err, core.ErrBillUnknown) {
			t.Errorf("settled the next call: %v", err)
		}
		return nil
	})
	wantLeft(t, limiter, "outer", me, hour, 90)
}

// A settlement whose reply is lost can be repeated, whether Redis has carried it out or not, and is
// carried out once. Another number comes too late.
func TestASettlementWhoseReplyIsLost(t *testing.T) {
	server, n := redistest.Start(t), new(network)
	n.loses.Store("nothing")
	rule := estimating("n", core.PerHour(10_000), 1000)
	client := server.Client(t, func(o *redis.Options) { o.Dialer = n.dial })
	limiter := newLimiter(t, core.Options{Redis: client, Timeout: patient})
	guard, left := newGuard(t, limiter, rule), 10_000
	for _, loss := range []string{"nothing", "the command", "the reply"} { // at first, Redis learns the scripts
		for _, used := range []int{100, 1500} {
			err := handled(t, guard, func(ctx context.Context) error {
				if n.loses.Store(loss); loss != "nothing" {
					if err := core.Settle(ctx, core.Costs{"n": used}); !errors.Is(err, core.ErrStore) {
						t.Errorf("%s is lost: %v", loss, err)
					}
					if used == 1500 {
						if err := core.Settle(ctx, core.Costs{"n": 2000}); !errors.Is(err, core.ErrBillSettled) || !strings.HasSuffix(err.Error(), "at 1500") {
							t.Errorf("%s was lost, then another number: %v", loss, err)
						}
						return nil
					}
				}
				return core.Settle(ctx, core.Costs{"n": used})
			})
			if err != nil {
				t.Errorf("%s was lost, then repeated: %v", loss, err)
			}
			left -= used
			wantLeft(t, limiter, "n", me, core.PerHour(10_000), left)
		}
	}
}

// network loses the next command about the caller, or the reply to it, with its connection.
type network struct{ loses atomic.Value }

func (n *network) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	conn, err := new(net.Dialer).DialContext(ctx, network, addr)
	return &lossy{Conn: conn, of: n}, err
}

type lossy struct {
	net.Conn
	of   *network
	lost atomic.Bool
}

func (l *lossy) Write(b []byte) (int, error) {
	if !bytes.Contains(b, []byte("{"+me+"}")) {
		return l.Conn.Write(b)
	}
	loss := l.of.loses.Swap("nothing")
	if l.lost.Store(loss != "nothing"); loss == "the command" {
		l.Close()
		return len(b), nil
	}
	return l.Conn.Write(b)
}

func (l *lossy) Read(b []byte) (int, error) {
	n, err := l.Conn.Read(b)
	if l.lost.Load() {
		l.Close()
		return 0, io.EOF
	}
	return n, err
}

// An estimate that was counted here while Redis was away is given back here, and not in the Redis that is back
// and never charged it.
func TestSettlingWhenRedisIsBack(t *testing.T) {
	server := redistest.Start(t)
	rule := estimating("n", core.PerHour(10), 4)
	rule.OnStoreError = core.CountLocally(1)
	guard := newGuard(t, newLimiter(t, core.Options{Redis: server.Client(t), Timeout: patient}), rule)
	wantSettled(t, guard, "n", 3, nil)
	server.Kill()
	err := handled(t, guard, func(ctx context.Context) error {
		server.Restart()
		if _, err := newLimiter(t, core.Options{Redis: server.Client(t)}).MustCounter("n", core.PerHour(10)).AllowN(background, me, 5); err != nil {
			t.Fatal(err)
		}
		return core.Settle(ctx, core.Costs{"n": 1})
	})
	if err != nil {
		t.Error(err)
	}
	wantLeft(t, newLimiter(t, core.Options{Redis: server.Client(t)}), "n", me, core.PerHour(10), 5)
}
