package core_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/internal/redistest"
)

// byHand is a rule that heeds bans, but brings none on.
var byHand = core.Rule{Name: "n", Seconds: 3600, MaxCount: 2, Ban: core.Ban{ByHand: true}}

func banFor(t testing.TB, limiter *core.Limiter, subject string, span time.Duration) {
	t.Helper()
	if _, err := limiter.Ban(background, "n", subject, span); err != nil {
		t.Fatal(err)
	}
}

func unban(t testing.TB, limiter *core.Limiter, subject string) {
	t.Helper()
	if _, err := limiter.Unban(background, "n", subject); err != nil {
		t.Fatal(err)
	}
}

func TestABanByHandAndItsEnd(t *testing.T) {
	onBothEngines(t, func(t *testing.T, options core.Options, _ core.Source) {
		limiter := newLimiter(t, options)
		guard := newGuard(t, limiter, byHand)
		unban(t, limiter, me) // whom nobody banned
		banFor(t, limiter, me, time.Hour)
		for range 3 {
			d := wantStatus(t, guard, newView("GET", "/"), 429).Refusal.Decision
			if d.Reason != core.Banned || d.RetryAfter > time.Hour || d.RetryAfter < time.Hour-patient {
				t.Errorf("%+v", d)
			}
		}
		wantServed(t, guard, newView("GET", "/").from("192.0.2.2"), ok, 200)
		wantLeft(t, limiter, "n", me, core.PerHour(2), 2) // a banned call is not charged, and a direct one knows no ban
		unban(t, limiter, me)
		unban(t, limiter, me)
		wantServed(t, guard, newView("GET", "/"), ok, 200, 200, 429)
	})
}

// An address is no subject: without ip: it would name a caller whom no rule counts.
func TestAnAddressIsNoSubject(t *testing.T) {
	onBothEngines(t, func(t *testing.T, options core.Options, _ core.Source) {
		limiter := newLimiter(t, options)
		guard := newGuard(t, limiter, byHand)
		for _, address := range []string{"192.0.2.1", "2001:db8::1", "::ffff:192.0.2.1", "fe80::1%eth0"} {
			for name, err := range map[string]error{
				"Ban":                errorOf(limiter.Ban(background, "n", address, time.Hour)),
				"Unban":              errorOf(limiter.Unban(background, "n", address)),
				"Reset":              errorOf(resetOf(limiter, background, "n", address, core.PerHour(2))),
				"Reset of Unlimited": errorOf(resetOf(limiter, background, "n", address, core.Unlimited)),
			} {
				wantRuleError(t, err, "n", "subject", address)
				if !strings.Contains(fmt.Sprint(err), "core.IPSubject(addr)") {
					t.Errorf("%s of %s: %v", name, address, err)
				}
			}
		}
		caller := newView("GET", "/").from("2001:db8::1")
		subject := core.IPSubject(caller.peer)
		banFor(t, limiter, subject, time.Hour)
		wantStatus(t, guard, caller, 429)
		unban(t, limiter, subject)
		wantServed(t, guard, caller, ok, 200, 200, 429)
		if _, err := resetOf(limiter, background, "n", subject, core.PerHour(2)); err != nil {
			t.Fatal(err)
		}
		wantServed(t, guard, caller, ok, 200)
		for _, subject := range []string{"192.0.2.0/24", "192.0.2.1:80", "user:192.0.2.1", "1234"} {
			unban(t, limiter, subject)
		}
	})
}

func TestBansByHandEndByThemselves(t *testing.T) {
	limiter, clock := atTestTime(t, core.Options{})
	guard := newGuard(t, limiter, byHand)
	banFor(t, limiter, me, time.Hour)
	banFor(t, limiter, me, time.Minute) // the longer one holds
	wantBan(t, guard, time.Hour)
	clock.add(30 * time.Minute)
	banFor(t, limiter, me, time.Hour)
	wantBan(t, guard, time.Hour)
	clock.add(time.Hour - time.Microsecond)
	wantBan(t, guard, time.Microsecond)
	clock.add(time.Microsecond)
	wantStatus(t, guard, newView("GET", "/"), 200)
}

// A rule that bans by hand alone does not ban a caller who is refused again and again.
func TestNobodyIsBannedByHandAlone(t *testing.T) {
	onBothEngines(t, func(t *testing.T, options core.Options, _ core.Source) {
		guard := newGuard(t, newLimiter(t, options), byHand)
		wantServed(t, guard, newView("GET", "/"), ok, 200, 200, 429, 429, 429)
		if d := wantStatus(t, guard, newView("GET", "/"), 429).Refusal.Decision; d.Reason != core.LimitExceeded {
			t.Errorf("%+v", d)
		}
	})
}

// Unban forgets strikes and earlier bans, too.
func TestUnbanStartsAfresh(t *testing.T) {
	limiter, clock := atTestTime(t, core.Options{})
	guard := newGuard(t, limiter, stern)
	bannedAfterThree(t, guard, clock, 10*time.Minute)
	refusedIn(t, guard, clock)
	refusedIn(t, guard, clock)
	unban(t, limiter, me)
	bannedAfterThree(t, guard, clock, 10*time.Minute)
	bannedAfterThree(t, guard, clock, 20*time.Minute)
	banFor(t, limiter, me, time.Hour)
	wantBan(t, guard, time.Hour)
	unban(t, limiter, me)
	wantStatus(t, guard, newView("GET", "/"), 200)
}

func TestWrongBans(t *testing.T) {
	limiter := newLimiter(t, core.Options{})
	newGuard(t, limiter, core.Rule{Name: "deaf", Seconds: 60})
	newGuard(t, limiter, byHand)
	const year = 366 * 24 * time.Hour
	for _, test := range []struct {
		name, counter, subject string
		span                   time.Duration
		rule, field, value     string
	}{
		{"no name", "", "s", time.Hour, "", "name", ""},
		{"no subject", "n", "", time.Hour, "n", "subject", ""},
		{"no end", "n", "s", 0, "n", "span", "0s"},
		{"backwards", "n", "s", -time.Hour, "n", "span", "-1h"},
		{"no time", "n", "s", time.Millisecond - 1, "n", "span", "999.999µs"},
		{"for ever", "n", "s", year + 1, "n", "span", "8784h"},
		{"a rule that would not see it", "deaf", "s", time.Hour, "deaf", "Ban", "{0 0s 0s false}"},
	} {
		t.Run(test.name, func(t *testing.T) {
			wantRuleError(t, errorOf(limiter.Ban(background, test.counter, test.subject, test.span)), test.rule, test.field, test.value)
		})
	}
	wantRuleError(t, errorOf(limiter.Unban(background, "", "s")), "", "name", "")
	wantRuleError(t, errorOf(limiter.Unban(background, "n", "")), "n", "subject", "")
	for _, span := range []time.Duration{time.Millisecond, year} {
		banFor(t, limiter, "s", span)
	}
	if _, err := limiter.Ban(background, "of another process", "s", time.Hour); err != nil {
		t.Errorf("a name that this limiter has no rules of: %v", err)
	}
	heeding := core.Rule{Name: "deaf", Seconds: 60, Ban: core.Ban{ByHand: true}}
	newGuard(t, limiter, heeding)
	newGuard(t, limiter, core.Rule{Name: "deaf", Seconds: 60})
	if _, err := limiter.Ban(background, "deaf", "s", time.Hour); err != nil {
		t.Errorf("one rule of the name heeds it now: %v", err)
	}
}

func TestBansWithoutAnAnswer(t *testing.T) {
	ended, cancel := context.WithCancel(background)
	cancel()
	onBothEngines(t, func(t *testing.T, options core.Options, _ core.Source) {
		limiter := newLimiter(t, options)
		guard := newGuard(t, limiter, byHand)
		if _, err := limiter.Ban(ended, "n", me, time.Hour); !errors.Is(err, context.Canceled) {
			t.Errorf("Ban: %v", err)
		}
		wantServed(t, guard, newView("GET", "/"), ok, 200)
		banFor(t, limiter, me, time.Hour)
		if _, err := limiter.Unban(ended, "n", me); !errors.Is(err, context.Canceled) {
			t.Errorf("Unban: %v", err)
		}
		wantServed(t, guard, newView("GET", "/"), ok, 429)
	})
	limiter := newLimiter(t, deadRedis(t))
	for name, err := range map[string]error{
		"Ban": errorOf(limiter.Ban(background, "n", "s", time.Hour)), "Unban": errorOf(limiter.Unban(background, "n", "s")),
	} {
		if !errors.Is(err, core.ErrStore) {
			t.Errorf("%s: %v, want ErrStore", name, err)
		}
	}
}

// Unnamed rules are banned from by the name that a Decision shows.
func TestABanFromARoute(t *testing.T) {
	onBothEngines(t, func(t *testing.T, options core.Options, _ core.Source) {
		limiter := newLimiter(t, options)
		rule := byHand
		rule.Name = ""
		guard := newGuard(t, limiter, rule)
		if _, err := limiter.Ban(background, "GET /users/:id", me, time.Hour); err != nil {
			t.Fatal(err)
		}
		wantServed(t, guard, newView("GET", "/users/:id"), ok, 429)
		wantServed(t, guard, newView("GET", "/"), ok, 200)
	})
}

// Ban, Unban and Reset report whether they changed anything, wherever the counters are.
func TestWhetherAnOperatorChangedAnything(t *testing.T) {
	clients := map[string]func() redis.UniversalClient{
		"memory":  func() redis.UniversalClient { return nil },
		"redis":   func() redis.UniversalClient { return redistest.Start(t).Client(t) },
		"ring":    func() redis.UniversalClient { return redistest.StartRing(t, 2).Client(t) },
		"cluster": func() redis.UniversalClient { return redistest.StartCluster(t).Client(t) },
	}
	for name, client := range clients {
		t.Run(name, func(t *testing.T) {
			options := core.Options{Timeout: patient}
			if name != "memory" {
				options.Redis = client()
			}
			limiter := newLimiter(t, options)
			counter := limiter.MustCounter("n", core.PerHour(3), core.PerDay(5).Log())
			slots := limiter.MustSlots("slots", 1)
			if _, _, err := slots.Hold(background, "s"); err != nil {
				t.Fatal(err)
			}
			if _, err := counter.Allow(background, "s"); err != nil {
				t.Fatal(err)
			}
			for i, step := range []struct {
				do   func() (bool, error)
				want bool
			}{
				{func() (bool, error) { return limiter.Unban(background, "n", "s") }, false},
				{func() (bool, error) { return limiter.Ban(background, "n", "s", time.Hour) }, true},
				{func() (bool, error) { return limiter.Ban(background, "n", "s", time.Minute) }, false},
				{func() (bool, error) { return limiter.Ban(background, "n", "s", 2*time.Hour) }, true},
				{func() (bool, error) { return limiter.Unban(background, "n", "s") }, true},
				{func() (bool, error) { return limiter.Unban(background, "n", "s") }, false},
				{func() (bool, error) { return counter.Reset(background, "s") }, true},
				{func() (bool, error) { return counter.Reset(background, "s") }, false},
				{func() (bool, error) { return slots.Reset(background, "s") }, true},
				{func() (bool, error) { return slots.Reset(background, "s") }, false},
			} {
				if changed, err := step.do(); err != nil || changed != step.want {
					t.Errorf("step %d: %v, %v; want %v", i, changed, err, step.want)
				}
			}
		})
	}
}

// The log says who acted and why, once for each act, if the context says so.
func TestWithActor(t *testing.T) {
	var log logbook
	limiter := newLimiter(t, core.Options{Logger: log.logger()})
	guard := newGuard(t, limiter, byHand)
	counter := limiter.MustCounter("n", core.PerHour(2))
	act := func(ctx context.Context) {
		for _, err := range []error{
			errorOf(limiter.Ban(ctx, "n", "s", time.Hour)), errorOf(limiter.Unban(ctx, "n", "s")),
			errorOf(counter.Reset(ctx, "s")), errorOf(guard.Reset(ctx, "s")),
		} {
			if err != nil {
				t.Error(err)
			}
		}
	}
	act(background)
	if log.count("operator") > 0 {
		t.Errorf("without an actor: %s", log.text.String())
	}
	ctx := core.WithActor(background, "bob", "ticket 7")
	act(ctx)
	for words, lines := range map[string]int{"act=ban": 1, "act=unban": 1, "act=reset": 2, "changed=true": 2, "": 4} {
		if got := log.count("author=bob", `note="ticket 7"`, "subject=s", "rule=n", words); got != lines {
			t.Errorf("%d lines with %q, want %d: %s", got, words, lines, log.text.String())
		}
	}
	_, _ = limiter.Ban(ctx, "n", "192.0.2.1", time.Hour) // refused, so nothing was done
	if log.count("operator") != 4 {
		t.Errorf("%s", log.text.String())
	}
	down := deadRedis(t)
	down.Logger = log.logger()
	if _, err := newLimiter(t, down).Ban(ctx, "n", "s", time.Hour); err == nil || log.count("act=ban", "changed=false", "error=") != 1 {
		t.Errorf("%v: %s", err, log.text.String())
	}
}
