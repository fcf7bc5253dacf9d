package core_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/operate"
	"github.com/accesslimit/accesslimit/internal/redistest"
)

// An organization has used up its limit. Calls that its limit does not hold for, and that another
// server refuses, give it nothing back.
func TestRefusedCallsGiveBackNothingThatTheyDidNotTake(t *testing.T) {
	options := core.Options{Redis: redistest.StartRing(t, 3).Client(t), Timeout: patient}
	const day = 24 * time.Hour
	for _, limit := range []core.Limit{core.PerDay(3), core.PerDay(3).Fixed(), core.PerCalendarMonth(3, "UTC")} {
		further := core.Limit{Max: 3, Window: 2 * day, Algorithm: limit.Algorithm}
		for name, change := range map[string]func(r *core.Rule, o operator){
			"a plan": func(r *core.Rule, _ operator) {
				r.Plans = map[string]core.Limit{"internal": core.Unlimited}
				r.Plan = func(core.Request) (string, error) { return "internal", nil }
			},
			"an override":        func(_ *core.Rule, o operator) { o.lift("org") },
			"a soft block":       func(r *core.Rule, o operator) { r.Mode = core.Soft; o.block("org", time.Time{}) },
			"a soft cost":        func(r *core.Rule, _ operator) { r.Mode, r.Cost = core.Soft, cost(4) },
			"a soft lower limit": func(r *core.Rule, o operator) { r.Mode, r.Cost = core.Soft, cost(2); o.max("org", 1) },
		} {
			t.Run(fmt.Sprint(name, " ", limit), func(t *testing.T) {
				options.Prefix = fmt.Sprint(strings.ReplaceAll(name, " ", "-"), limit.Algorithm)
				limiter := newLimiter(t, options)
				core.GiveBackAtOnce(limiter)
				org := core.Rule{Name: "org", Limit: limit, Also: []core.Limit{further}, Key: key("org"), Overrides: true}
				for range 3 {
					if _, err := limiter.MustCounter("org", limit, further).Allow(background, "org"); err != nil {
						t.Fatal(err)
					}
				}
				change(&org, operator{t, limiter, "org", limit})
				user := core.Rule{Name: "user", Limit: core.PerDay(1), Key: core.ByHeader("X-User")}
				guard := newGuard(t, limiter, org, user)
				for _, of := range []string{"1", "2", "3"} { // of whom this guard knows nothing yet
					wantStatus(t, newGuard(t, limiter, user), newView("GET", "/").with("X-User", of), 200)
					wantStatus(t, guard, newView("GET", "/").with("X-User", of), 429)
				}
				wantLeft(t, limiter, "org", "org", limit, 0)
				wantLeft(t, limiter, "org", "org", further, 0)
			})
		}
	}
}

// A call whose cost never fits, or whose subject is blocked, bans nobody whom another rule refuses, nor
// would if that rule were not in DryRun. A block goes before a cost.
func TestStoppedCallsBanNobody(t *testing.T) {
	onEveryDeployment(t, func(t *testing.T, options core.Options) {
		limiter := newLimiter(t, options)
		login := core.Rule{Name: "login", Limit: core.PerDay(1), Key: key("caller"), Ban: core.Ban{After: 1, For: time.Hour}}
		tried := login
		tried.Name, tried.Key, tried.Mode = "tried", key("user"), core.DryRun
		wantStatus(t, attach(t, limiter, login, tried), newView("GET", "/"), 200)
		costly := core.Rule{Name: "export", Limit: core.PerDay(3), Key: key("tenant"), Overrides: true, Cost: cost(4)}
		blocked := core.Rule{Name: "api", Limit: core.PerDay(3), Key: key("key"), Overrides: true}
		operator{t, limiter, "api", blocked.Limit}.block("key", time.Time{})
		for name, test := range map[string]struct {
			rules []core.Rule
			want  int
		}{
			"a cost that never fits":                {[]core.Rule{login, tried, costly}, 400},
			"a block":                               {[]core.Rule{login, tried, blocked}, 429},
			"a block before a cost that never fits": {[]core.Rule{login, blocked, costly, tried}, 429},
			"a block behind a cost that never fits": {[]core.Rule{costly, blocked, login, tried}, 429},
		} {
			guard := newGuard(t, limiter, test.rules...)
			for range 2 { // the second time, it is known which server refuses
				if got := status(guard.Check(newView("GET", "/"))); got != test.want {
					t.Errorf("%s: status %d, want %d", name, got, test.want)
				}
			}
			if isBanned(t, limiter, "caller") || isBanned(t, limiter, "user") {
				t.Errorf("%s banned a caller", name)
			}
		}
		free := core.Rule{Name: "free", Limit: core.PerDay(9), Key: key("key"), Overrides: true}
		wantStatus(t, newGuard(t, limiter, tried, free), newView("GET", "/"), 200)
		wantStatus(t, newGuard(t, limiter, login, free), newView("GET", "/"), 429)
		if !isBanned(t, limiter, "caller") || !isBanned(t, limiter, "user") {
			t.Error("a call that only the limit refused banned nobody")
		}
		wantLeft(t, limiter, "free", "key", free.Limit, 8)
	})
}

// A rule in DryRun whose ban counts a refusal does not charge other rules of its subject twice, while
// a rule on another server may be overridden.
func TestDryBansChargeOnce(t *testing.T) {
	onEveryDeployment(t, func(t *testing.T, options core.Options) {
		limiter := newLimiter(t, options)
		api := core.Rule{Name: "api", Limit: core.PerDay(9), Key: key("caller")}
		login := core.Rule{Name: "login", Limit: core.PerDay(9), Key: key("caller"), Ban: core.Ban{After: 1, For: time.Hour}}
		tried := core.Rule{Name: "tried", Limit: core.PerDay(1), Key: key("caller"), Mode: core.DryRun, Ban: core.Ban{After: 3, For: time.Hour}}
		other := core.Rule{Name: "other", Limit: core.PerDay(9), Key: key("tenant"), Overrides: true}
		guard := newGuard(t, limiter, api, login, tried, other)
		for left := 8; left > 4; left-- {
			wantStatus(t, guard, newView("GET", "/"), 200)
			wantLeft(t, limiter, "api", "caller", api.Limit, left)
		}
	})
}

// isBanned reports whether a rule bans a subject. One of the Guards with the rule must be in use,
// because Inspect does not show those of others.
func isBanned(t *testing.T, limiter *core.Limiter, subject string) bool {
	t.Helper()
	x, err := operate.New(limiter).Inspect(background, subject)
	if err != nil {
		t.Fatal(err)
	}
	if len(x.Rules) == 0 {
		t.Fatal("no rule is attached")
	}
	return slices.ContainsFunc(x.Rules, func(r operate.ExplainedRule) bool { return !r.BannedUntil.IsZero() })
}
