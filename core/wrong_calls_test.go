package core_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/accesslimit/accesslimit/core"
)

// handleCall makes a handle and calls it.
type handleCall struct {
	limit core.Limit // that suits it
	do    func(l *core.Limiter, ctx context.Context, name, subject string, limit core.Limit, n int) (core.Decision, error)
}

func ofCounter(call func(c core.Counter, ctx context.Context, subject string, n int) (core.Decision, error)) handleCall {
	return handleCall{core.PerHour(5), func(l *core.Limiter, ctx context.Context, name, subject string, limit core.Limit, n int) (core.Decision, error) {
		c, err := l.Counter(name, limit)
		if err != nil {
			return core.Decision{}, err
		}
		return call(c, ctx, subject, n)
	}}
}

func ofPacer(call func(p core.Pacer, ctx context.Context, subject string, n int) (core.Decision, error)) handleCall {
	return handleCall{core.PerHour(5).Bucket(5), func(l *core.Limiter, ctx context.Context, name, subject string, limit core.Limit, n int) (core.Decision, error) {
		p, err := l.Pacer(name, limit)
		if err != nil {
			return core.Decision{}, err
		}
		return call(p, ctx, subject, n)
	}}
}

func ofLog(call func(l core.Log, ctx context.Context, subject string, n int) (core.Decision, error)) handleCall {
	return handleCall{core.PerHour(5).Log(), func(l *core.Limiter, ctx context.Context, name, subject string, limit core.Limit, n int) (core.Decision, error) {
		log, err := l.Log(name, limit)
		if err != nil {
			return core.Decision{}, err
		}
		return call(log, ctx, subject, n)
	}}
}

// handleCalls are the calls of all handles.
var handleCalls = map[string]handleCall{
	"Counter.AllowN": ofCounter(core.Counter.AllowN),
	"Counter.AllowUpTo": ofCounter(func(c core.Counter, ctx context.Context, subject string, n int) (d core.Decision, err error) {
		_, d, err = c.AllowUpTo(ctx, subject, n)
		return d, err
	}),
	"Counter.With": {core.PerHour(5), func(l *core.Limiter, ctx context.Context, name, subject string, limit core.Limit, n int) (core.Decision, error) {
		return ofCounter(func(c core.Counter, ctx context.Context, subject string, n int) (core.Decision, error) {
			return c.With(limit).AllowN(ctx, subject, n)
		}).do(l, ctx, name, subject, core.PerDay(1), n)
	}},
	"Counter.Charge": ofCounter(core.Counter.Charge),
	"Counter.Open": ofCounter(func(c core.Counter, ctx context.Context, subject string, n int) (core.Decision, error) {
		bill, d, err := c.Open(ctx, subject, n)
		if bill != nil && err != nil {
			err = errors.Join(err, errors.New("there is a bill beside the error"))
		}
		return d, err
	}),
	"Counter.Peek": ofCounter(func(c core.Counter, ctx context.Context, subject string, _ int) (core.Decision, error) {
		return c.Peek(ctx, subject)
	}),
	"Counter.Reset": ofCounter(func(c core.Counter, ctx context.Context, subject string, _ int) (core.Decision, error) {
		return core.Decision{}, errorOf(c.Reset(ctx, subject))
	}),
	"Pacer.Acquire": ofPacer(core.Pacer.Acquire), "Pacer.Reserve": ofPacer(core.Pacer.Reserve),
	"Pacer.TryAcquire": ofPacer(func(p core.Pacer, ctx context.Context, subject string, n int) (core.Decision, error) {
		return p.TryAcquire(ctx, subject, n, time.Hour)
	}),
	"Log.AllowN": ofLog(func(l core.Log, ctx context.Context, subject string, n int) (core.Decision, error) {
		return l.AllowN(ctx, subject, n, "note")
	}),
	"Log.Records": ofLog(func(l core.Log, ctx context.Context, subject string, _ int) (core.Decision, error) {
		_, err := l.Records(ctx, subject)
		return core.Decision{}, err
	}),
	"Slots.Hold": {core.InFlight(5), func(l *core.Limiter, ctx context.Context, name, subject string, limit core.Limit, _ int) (core.Decision, error) {
		slots, err := l.Slots(name, limit.Max)
		if err != nil {
			return core.Decision{}, err
		}
		release, d, err := slots.LostAfter(limit.Window).Hold(ctx, subject)
		release()
		return d, err
	}},
}

// wantNoDecision checks that there is no decision beside an error.
func wantNoDecision(t *testing.T, name string, d core.Decision) {
	t.Helper()
	if !reflect.DeepEqual(d, core.Decision{}) {
		t.Errorf("%s: beside the error: %+v", name, d)
	}
}

// A caller whose context has ended gets its error, and is charged nothing.
func TestCallsOfAnEndedCaller(t *testing.T) {
	canceled, cancel := context.WithCancel(background)
	cancel()
	late, cancel := context.WithTimeout(background, -1)
	defer cancel()
	onBothEngines(t, func(t *testing.T, options core.Options, _ core.Source) {
		limiter := newLimiter(t, options)
		for name, call := range handleCalls {
			for ctx, want := range map[context.Context]error{canceled: context.Canceled, late: context.DeadlineExceeded} {
				d, err := call.do(limiter, ctx, name, "s", call.limit, 1)
				if !errors.Is(err, want) || errors.Is(err, core.ErrStore) {
					t.Errorf("%s: %v, want %v and no ErrStore", name, err, want)
				}
				wantNoDecision(t, name, d)
				wantLeft(t, limiter, name, "s", call.limit, 5)
			}
		}
	})
}

// Without Redis, calls end with ErrStore, and no decision is reported.
func TestCallsWithoutRedis(t *testing.T) {
	var heard decisions
	options := deadRedis(t)
	options.OnDecision = heard.note
	limiter := newLimiter(t, options)
	for name, call := range handleCalls {
		d, err := call.do(limiter, background, name, "s", call.limit, 1)
		if !errors.Is(err, core.ErrStore) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v, want ErrStore", name, err)
		}
		wantNoDecision(t, name, d)
	}
	if len(heard.heard) > 0 {
		t.Errorf("OnDecision received %+v", heard.heard)
	}
}

// wrongCalls are mistakes in the calls whose names begin so. The zero Limit stands for one that suits
// the call.
var wrongCalls = []struct {
	of, name, subject  string
	limit              core.Limit
	n                  int
	rule, field, value string
}{
	{"", "", "s", core.Limit{}, 1, "", "name", ""},
	{"", "n", "", core.Limit{}, 1, "n", "subject", ""},
	{"Counter.Reset", "n", "192.0.2.1", core.Limit{}, 1, "n", "subject", "192.0.2.1"},
	{"Counter.Reset", "n", "192.0.2.1", core.Unlimited, 1, "n", "subject", "192.0.2.1"},
	{"Counter.Allow", "n", "s", core.Limit{}, -1, "n", "n", "-1"},
	{"Counter.With", "n", "s", core.Limit{}, math.MinInt, "n", "n", "-"},
	{"Counter.Charge", "n", "s", core.Limit{}, -1, "n", "n", "-1"},
	{"Counter.Charge", "n", "s", core.PerHour(5).Log(), 1, "n", "Limit", "5/h log"},
	{"Counter.Open", "n", "s", core.Limit{}, -1, "n", "n", "-1"},
	{"Counter.Open", "n", "s", core.Limit{}, 0, "n", "estimate", "0"},
	{"Counter.Open", "n", "s", core.PerHour(5).Log(), 1, "n", "Limit", "5/h log"},
	{"Counter.", "n", "s", core.PerHour(0), 1, "n", "Max", "0"},
	{"Counter.", "n", "s", core.Limit{Max: 1}, 1, "n", "Window", "0s"},
	{"Counter.", "n", "s", core.PerHour(noMax()), 1, "n", "Max", fmt.Sprint(noMax())},
	{"Pacer.", "n", "s", core.Limit{}, 0, "n", "n", "0"},
	{"Pacer.", "n", "s", core.Limit{}, -1, "n", "n", "-1"},
	{"Pacer.", "n", "s", core.PerSecond(1), 1, "n", "Limit", "1/s"},
	{"Pacer.", "n", "s", core.InFlight(1), 1, "n", "Limit", "1 at once"},
	{"Pacer.", "n", "s", core.PerHour(0).Bucket(1), 1, "n", "Max", "0"},
	{"Pacer.", "n", "s", core.PerSecond(1).Bucket(-1), 1, "n", "Burst", "-1"},
	{"Log.AllowN", "n", "s", core.Limit{}, -1, "n", "n", "-1"},
	{"Log.", "n", "s", core.PerHour(3), 1, "n", "Limit", "3/h"},
	{"Log.", "n", "s", core.PerHour(10_001).Log(), 1, "n", "Max", "10001"},
	{"Slots.", "n", "s", core.InFlight(0), 1, "n", "Max", "0"},
	{"Slots.", "n", "s", core.InFlight(10_001), 1, "n", "Max", "10001"},
	{"Slots.", "n", "s", core.InFlight(1).LostAfter(time.Second - time.Microsecond), 1, "n", "Window", "999.999ms"},
}

// A mistake is a *RuleError that names the field. There is no decision.
func TestWrongCalls(t *testing.T) {
	var heard decisions
	limiter := newLimiter(t, core.Options{OnDecision: heard.note})
	for name, call := range handleCalls {
		for _, test := range wrongCalls {
			if !strings.HasPrefix(name, test.of) {
				continue
			}
			limit := test.limit
			if (limit == core.Limit{}) {
				limit = call.limit
			}
			t.Run(fmt.Sprint(name, " ", test.field, test.value), func(t *testing.T) {
				d, err := call.do(limiter, background, test.name, test.subject, limit, test.n)
				wantRuleError(t, err, test.rule, test.field, test.value)
				wantNoDecision(t, name, d)
			})
		}
	}
	if len(heard.heard) > 0 {
		t.Errorf("OnDecision received %+v", heard.heard)
	}
}
