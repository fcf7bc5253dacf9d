package core_test

import (
	"strings"
	"testing"
	"time"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/internal/redistest"
)

// While a limit that is the same for all callers refuses, no caller is identified, and Redis is not
// asked either, whether the caller is logged in or not.
func TestARefusalIsRepeatedBeforeIdentify(t *testing.T) {
	ip := core.Rule{Name: "ip", Seconds: 3600, MaxCount: 1}
	banning := ip
	banning.Ban = core.Ban{After: 3, For: time.Hour}
	login := core.Rule{Name: "user", Seconds: 3600, NeedLogin: true}
	byUser := core.Rule{Name: "user", Seconds: 3600, Key: core.ByUser}
	plan := core.Rule{Name: "user", Seconds: 3600, LimitFor: func(r core.Request) (core.Limit, error) {
		_, err := r.User()
		return core.Limit{}, err
	}}
	client := redistest.Start(t).Client(t)
	for name, rules := range map[string][]core.Rule{
		"before": {ip, login}, "behind": {login, ip}, "a key by user": {ip, byUser}, "behind a key by user": {byUser, ip}, "a plan": {ip, plan},
		"with a ban": {banning, login}, "two of them": {{Name: "all", Seconds: 3600, MaxCount: 9, Key: core.Global}, login, ip},
	} {
		t.Run(name, func(t *testing.T) {
			asked := 0
			identify := func(r core.Request) (string, error) {
				asked++
				return whoSays(r)
			}
			limiter, guard := (*core.Limiter)(nil), (*core.Guard)(nil)
			restart := func() { // a process that remembers no refusal yet
				limiter = newLimiter(t, core.Options{Redis: client, Prefix: strings.ReplaceAll(name, " ", ""), Timeout: patient, Identify: identify})
				guard = newGuard(t, limiter, rules...)
			}
			restart()
			wantStatus(t, guard, newView("GET", "/").as("alice"), 200)
			for _, who := range []string{"alice", "bob", ""} {
				restart()
				wantStatus(t, guard, newView("GET", "/").as(who), 429)
				begun, before, source := time.Now(), limiter.Stats().Trips, core.FromRedis
				asked = 0
				for range 100 {
					d := wantStatus(t, guard, newView("GET", "/").as(who), 429).Refusal.Decision
					if source = d.Source; d.Rule != "ip" || d.RetryAfter < time.Minute {
						t.Fatalf("%+v", d)
					}
				}
				// A refusal is remembered for a second.
				most := 1 + int(time.Since(begun)/time.Second)
				if name == "with a ban" && who == "" {
					asked = 0 // anonymous calls did not count for the ban, and those of a user must
				}
				if trips := int(limiter.Stats().Trips - before); asked > most || trips > most || source != core.FromDenyCache {
					t.Errorf("%q: Identify was asked %d times and Redis %d times for 100 calls, the last answered from %s", who, asked, trips, source)
				}
			}
		})
	}
}

// A refusal by a limit for all callers is not repeated before Identify runs if the caller's own
// limit refused that call too, if a rule in DryRun has to count the next one, or if its cost may
// never fit.
func TestRefusalsThatWaitForIdentify(t *testing.T) {
	ip := core.Rule{Name: "ip", Seconds: 60, MaxCount: 1}
	own := core.Rule{Name: "user", Seconds: 3600, MaxCount: 1, NeedLogin: true}
	tried, dear := own, own
	tried.MaxCount, tried.Mode = 9, core.DryRun
	dear.MaxCount, dear.Cost = 5, func(r core.Request) int { return 1 + 5*len(r.Header("Dear")) }
	client := redistest.Start(t).Client(t)
	for _, test := range []struct {
		name  string
		rules []core.Rule
		binds string
		heard int // of one call
	}{{"longer", []core.Rule{ip, own}, "user", 1}, {"tried", []core.Rule{ip, tried}, "ip", 2}, {"dear", []core.Rule{ip, dear}, "ip", 1}} {
		t.Run(test.name, func(t *testing.T) {
			var heard decisions
			limiter := newLimiter(t, core.Options{Redis: client, Prefix: test.name, Timeout: patient, Identify: whoSays, OnDecision: heard.note})
			guard := newGuard(t, limiter, test.rules...)
			wantStatus(t, guard, newView("GET", "/").as("alice"), 200)
			for range 3 {
				if d := wantStatus(t, guard, newView("GET", "/").as("alice"), 429).Refusal.Decision; d.Rule != test.binds {
					t.Errorf("%+v", d)
				}
			}
			heard.last(t, 4*test.heard)
			// The same limit has refused another call, but this rule need not count that one.
			if test.name == "tried" {
				wantStatus(t, newGuard(t, limiter, ip, core.Rule{Name: "live", Seconds: 60, NeedLogin: true}), newView("GET", "/").as("alice"), 429)
				wantStatus(t, guard, newView("GET", "/").as("alice"), 429)
				heard.last(t, 4*test.heard+1+test.heard)
			}
			if test.name == "dear" {
				wantStatus(t, guard, newView("GET", "/").as("alice").with("Dear", "1"), 400)
			}
		})
	}
}

// A caller who is not known, because nobody is logged in or Identify fails, is refused first by a limit
// that is the same for all. Otherwise the call is not charged.
func TestLimitForAllComesBeforeIdentify(t *testing.T) {
	login, byUser := core.Rule{Name: "login", Seconds: 3600, NeedLogin: true}, core.Rule{Name: "key", Seconds: 3600, Key: core.ByUser}
	onBothEngines(t, func(t *testing.T, options core.Options, _ core.Source) {
		var user string
		var fails error
		options.Identify = func(core.Request) (string, error) { return user, fails }
		limiter, ip := newLimiter(t, options), core.Rule{Name: "ip", Seconds: 3600, MaxCount: 1}
		for name, test := range map[string]struct {
			own    core.Rule
			fails  error
			status int
		}{"nobody": {login, nil, 401}, "unknown": {login, errVerify, 503}, "unknown, by its key": {byUser, errVerify, 503}} {
			guard := newGuard(t, limiter, test.own, ip)
			user, fails = "", test.fails
			wantStatus(t, guard, newView("GET", "/"), test.status)
			wantLeft(t, limiter, "ip", me, core.PerHour(1), 1)
			user, fails = "alice", nil
			wantStatus(t, guard, newView("GET", "/"), 200)
			user, fails = "", test.fails
			for range 3 {
				refusal := wantStatus(t, guard, newView("GET", "/"), 429).Refusal
				if d := refusal.Decision; d.Rule != "ip" || d.All != nil || len(refusal.Violated) != 1 {
					t.Errorf("%s: %+v", name, refusal)
				}
			}
			if _, err := resetOf(limiter, background, "ip", me, core.PerHour(1)); err != nil {
				t.Fatal(err)
			}
		}
	})
}
