package core_test

import (
	"context"
	"testing"
	"time"

	"github.com/accesslimit/accesslimit/core"
)

// A mistake that would panic in a request panics when the service is put together.
func TestNilFunctionsPanicAtOnce(t *testing.T) {
	for name, build := range map[string]func(){
		"BearerToken":  func() { core.BearerToken(nil) },
		"Cookie":       func() { core.Cookie("session", nil) },
		"FirstOf":      func() { core.FirstOf(nil) },
		"Join":         func() { core.Join(core.ByIP, nil) },
		"ContextValue": func() { core.ContextValue([]string{}) },
		"ByValue":      func() { core.ByValue(nil) },
	} {
		if !panics(build) {
			t.Errorf("%s: no panic", name)
		}
	}
}

// A caller whose deadline passes while a limit is looked up gets that answer, and is not asked to
// log in.
func TestCallerWhoseContextEndsIsNotAskedToLogIn(t *testing.T) {
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
	late, cancel := context.WithTimeout(background, -1)
	defer cancel()
	v.ctx = late
	if answer := guard.Check(v); answer.Refusal == nil || answer.Refusal.Code != 4 { // DEADLINE_EXCEEDED
		t.Errorf("after the deadline: %+v", answer.Refusal)
	}
	if len(reasons) != 2 || reasons[0] != core.ContextEnded || reasons[1] != core.ContextEnded {
		t.Errorf("the reasons are %v, want %s", reasons, core.ContextEnded)
	}
}

// endsLater is a context that ends after so many calls of Err.
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

func TestHeadersOfSeveralLimits(t *testing.T) {
	rule := core.Rule{
		Name: "api", Seconds: 1, MaxCount: 10,
		Also: []core.Limit{
			{Max: 50, Window: 10 * time.Second}, core.PerCalendarDay(70, "UTC"), core.InFlight(3),
			core.PerHour(60), {Max: 80, Window: time.Hour, Algorithm: core.FixedWindow}, core.PerHour(90).Bucket(95),
			core.PerCalendarMonth(99, "UTC"), core.PerCalendarMonth(98, "Asia/Tokyo"),
			{Max: 40, Window: time.Second, Algorithm: core.FixedWindow},
		},
	}
	for name, style := range map[string]core.HeaderStyle{"draft 10": core.HeadersDraft10, "draft 7": core.HeadersDraft7, "X": core.HeadersXRateLimit} {
		t.Run(name, func(t *testing.T) {
			limiter, _ := atTestTime(t, core.Options{Headers: style})
			v := newView("GET", "/")
			wantStatus(t, newGuard(t, limiter, rule), v, 200)
			want := map[string]map[string]string{
				"draft 10": {
					"Ratelimit-Policy": `"api";q=10;w=1, "api-10s";q=50;w=10, "api-day";q=70;w=86400, "api-at-once";q=3;qu="concurrent-requests", ` +
						`"api-1h";q=60;w=3600, "api-1h-2";q=80;w=3600, "api-1h-3";q=95;w=3800, "api-month";q=99;w=2678400, "api-month-2";q=98;w=2678400, "api-1s";q=40;w=1`,
					"Ratelimit": `"api";r=9;t=2, "api-10s";r=49;t=11, "api-day";r=69;t=86400, "api-at-once";r=2, ` +
						`"api-1h";r=59;t=3713, "api-1h-2";r=79;t=3600, "api-1h-3";r=94;t=40, "api-month";r=98;t=2419200, "api-month-2";r=97;t=2386800, "api-1s";r=39;t=1`,
				},
				// The slots are not shown.
				"draft 7": {"Ratelimit-Policy": "10;w=1", "Ratelimit": "limit=10, remaining=9, reset=2"},
				"X":       {"X-Ratelimit-Limit": "10", "X-Ratelimit-Remaining": "9"},
			}[name]
			for header, value := range want {
				if got := v.response[header]; len(got) != 1 || got[0] != value {
					t.Errorf("%s:\n%q, want\n%q", header, got, value)
				}
			}
			if name == "draft 10" {
				parseList(t, v.response["Ratelimit-Policy"])
				parseList(t, v.response["Ratelimit"])
			}
		})
	}
}
