package core_test

import (
	"context"
	"testing"

	"github.com/accesslimit/accesslimit/core"
)

// Two buckets that meet in one counter hold together: the slower refill of the one, the smaller
// burst of the other.
func TestTwoBucketsInOneCounterHoldTogether(t *testing.T) {
	fast := core.Rule{Limit: core.PerHour(1000).Bucket(3)}
	slow := core.Rule{Limit: core.PerHour(10).Bucket(20)}
	for name, rules := range map[string][]core.Rule{"fast first": {fast, slow}, "slow first": {slow, fast}} {
		t.Run(name, func(t *testing.T) {
			guard := newGuard(t, newLimiter(t, core.Options{}), rules...)
			for range 3 {
				wantStatus(t, guard, newView("GET", "/"), 200)
			}
			answer := wantStatus(t, guard, newView("GET", "/"), 429)
			if wait := answer.Refusal.Wait.Seconds(); wait < 300 || wait > 360 {
				t.Errorf("the wait is %v s, want that of the slow bucket: 360", wait)
			}
		})
	}
}

// A mistake that would panic in a request panics where the service is put together.
func TestNilFunctionsPanicAtOnce(t *testing.T) {
	for name, build := range map[string]func(){
		"BearerToken":  func() { core.BearerToken(nil) },
		"Cookie":       func() { core.Cookie("session", nil) },
		"FirstOf":      func() { core.FirstOf(nil) },
		"Join":         func() { core.Join(core.ByIP, nil) },
		"ContextValue": func() { core.ContextValue([]string{}) },
		"ByValue":      func() { core.ByValue(nil) },
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("no panic")
				}
			}()
			build()
		})
	}
}

// A caller whose deadline passes while a limit is looked up for them is told that, not to log in.
func TestNobodyWhoseContextEndsIsToldSo(t *testing.T) {
	var reasons []core.Reason
	options := deadRedis(t)
	options.Identify = func(core.Request) (string, error) { return "", nil }
	options.OnDecision = func(_ context.Context, e core.Event) {
		d := e.Decision
		reasons = append(reasons, d.Reason)
	}
	guard := newGuard(t, newLimiter(t, options), core.Rule{Name: "ip", Seconds: 60}, core.Rule{Name: "user", Seconds: 60, NeedLogin: true})
	ctx, cancel := context.WithCancel(background)
	v := newView("GET", "/")
	v.ctx = &endsLater{Context: ctx, end: cancel, after: 1}
	guard.Check(v)
	if len(reasons) != 1 || reasons[0] != core.ContextEnded {
		t.Errorf("the reasons are %v, want %s", reasons, core.ContextEnded)
	}
}

// endsLater is a context that ends when its Err has been asked so many times.
type endsLater struct {
	context.Context
	end   context.CancelFunc
	after int
}

func (e *endsLater) Err() error {
	if e.after--; e.after < 0 {
		e.end()
	}
	return e.Context.Err()
}
