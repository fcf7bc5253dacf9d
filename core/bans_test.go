package core_test

import (
	"net/http"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/internal/failure"
	"github.com/accesslimit/accesslimit/core/operate"
	"github.com/accesslimit/accesslimit/internal/logtest"
	"github.com/accesslimit/accesslimit/internal/redistest"
)

// byHand is a rule that checks bans, but never starts one.
var byHand = core.Rule{Name: "n", Seconds: 3600, MaxCount: 2, Ban: core.Ban{ByHand: true}}

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
		{"no end", "n", "s", 0, "n", "span", "0s"},
		{"backwards", "n", "s", -time.Hour, "n", "span", "-1h"},
		{"no time", "n", "s", time.Millisecond - 1, "n", "span", "999.999µs"},
		{"for ever", "n", "s", year + 1, "n", "span", "8784h"},
		{"a rule that would not see it", "deaf", "s", time.Hour, "deaf", "Ban", "nobody"},
	} {
		t.Run(test.name, func(t *testing.T) {
			wantRuleError(t, errorOf(operate.New(limiter).Ban(background, test.counter, test.subject, test.span)), test.rule, test.field, test.value)
		})
	}
	for _, span := range []time.Duration{time.Millisecond, year} {
		ban(t, limiter, "n", "s", span)
	}
	if _, err := operate.New(limiter).Ban(background, "of another process", "s", time.Hour); err != nil {
		t.Errorf("this limiter has no rules of the name: %v", err)
	}
	heeding := core.Rule{Name: "deaf", Seconds: 60, Ban: core.Ban{ByHand: true}}
	newGuard(t, limiter, heeding)
	newGuard(t, limiter, core.Rule{Name: "deaf", Seconds: 60})
	if _, err := operate.New(limiter).Ban(background, "deaf", "s", time.Hour); err != nil {
		t.Errorf("a rule of the name has Ban set now: %v", err)
	}
}

func TestBanText(t *testing.T) {
	for ban, want := range map[core.Ban]string{
		{}:                         "nobody",
		{ByHand: true}:             "by hand",
		{After: 3, For: time.Hour}: "after 3 windows, for 1h",
		{After: 1, For: 90 * time.Second, Max: 24 * time.Hour}: "after 1 window, for 1m30s, up to 24h",
	} {
		if got := ban.String(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// banningProcess is a process whose rules obey bans and overrides. There is one for each StorePolicy,
// and one that refuses nobody for each way to do so.
type banningProcess struct {
	t         *testing.T
	limiter   *core.Limiter
	guards    map[string]*core.Guard // by the names of their rules
	decisions *decisions
}

// call returns the status and the decision of a call. Of a rule in DryRun, that is what it would
// have decided.
func (p *banningProcess) call(rule, subject string) (int, core.Decision) {
	p.decisions.heard = nil
	got := status(p.guards[rule].Check(of(subject)))
	awaitDryRuns(p.t, p.limiter)
	if len(p.decisions.heard) == 0 {
		return got, core.Decision{}
	}
	return got, p.decisions.heard[0]
}

// imposeAll makes a process ban one subject, and block one for a time and one for ever, from all rules.
func (p *banningProcess) imposeAll(t *testing.T) {
	t.Helper()
	for rule := range banningPolicies {
		if rule != "dry" && rule != "soft" {
			ban(t, p.limiter, rule, "banned", time.Hour)
		}
		setOverride(t, p.limiter, rule, "blocked", operate.Override{Blocked: true, Until: time.Now().Add(time.Hour)})
		setOverride(t, p.limiter, rule, "outcast", operate.Override{Blocked: true})
	}
}

// wantRefused checks that each rule which refuses anybody refuses these subjects, with the wait, and
// that no other rule does.
func (p *banningProcess) wantRefused(t *testing.T, who string) {
	t.Helper()
	for rule := range banningPolicies {
		for subject, reason := range imposed {
			got, d := p.call(rule, subject)
			if rule == "dry" || rule == "soft" {
				if got != http.StatusOK {
					t.Errorf("%s: %s by %s: %d, %+v; that rule refuses nobody", who, subject, rule, got, d)
				}
				continue
			}
			wantsWait := subject != "outcast"
			if got != http.StatusTooManyRequests || d.Reason != reason || wantsWait != (d.RetryAfter > 59*time.Minute && d.RetryAfter <= time.Hour+time.Second) {
				t.Errorf("%s: %s by %s: %d, %v, %v", who, subject, rule, got, d.Reason, d.RetryAfter)
			}
		}
	}
}

// wantPolicies checks that others get what the policies of the rules say.
func (p *banningProcess) wantPolicies(t *testing.T, subject string) {
	t.Helper()
	for rule, want := range map[string]int{"open": 200, "closed": 503, "local": 200} {
		if got, d := p.call(rule, subject); got != want || d.Reason == core.Banned || d.Reason == core.Blocked {
			t.Errorf("%s by %s: %d, %+v, want %d", subject, rule, got, d, want)
		}
	}
}

var banningPolicies = map[string]core.StorePolicy{
	"open": core.FailOpen, "closed": core.FailClosed, "local": core.CountLocally(1), "dry": core.FailOpen, "soft": core.FailOpen,
}

func banningRule(name string) core.Rule {
	return core.Rule{
		Name: name, Limit: core.PerHour(50), Also: []core.Limit{core.PerDay(100)}, Key: ofSubject,
		Ban: core.Ban{ByHand: name != "soft"}, Overrides: true, OnStoreError: banningPolicies[name],
		Mode: map[string]core.Mode{"dry": core.DryRun, "soft": core.Soft}[name],
	}
}

func ofSubject(r core.Request) (string, error) { return r.Header("Subject")[0], nil }

func of(subject string) *fakeView { return newView("GET", "/").With("Subject", subject) }

func newBanningProcess(t *testing.T, o *outage) *banningProcess {
	t.Helper()
	p := &banningProcess{t: t, guards: make(map[string]*core.Guard), decisions: new(decisions)}
	p.limiter = newLimiter(t, core.Options{Redis: o.connect(t), Timeout: patient, OnDecision: p.decisions.note})
	for name := range banningPolicies {
		p.guards[name] = newGuard(t, p.limiter, banningRule(name))
	}
	return p
}

var imposed = map[string]core.Reason{"banned": core.Banned, "blocked": core.Blocked, "outcast": core.Blocked}

// strict bans a subject that is refused once.
var strict = core.Rule{
	Name: "n", Limit: core.PerHour(1), Ban: core.Ban{After: 1, For: time.Hour},
	Key: ofSubject,
}

// A ban that a rule imposes holds as well, and one that a process met only as a strike of its own.
func TestBansByRulesOutlastAnOutage(t *testing.T) {
	o := oneServer(t)
	process := func() *core.Limiter { return newLimiter(t, core.Options{Redis: o.connect(t), Timeout: patient}) }
	imposing, met, read := process(), process(), process()
	guards := []*core.Guard{newGuard(t, imposing, strict), newGuard(t, met, strict), newGuard(t, read, strict)}
	wantServed(t, guards[0], of("s"), ok, 200, 429)
	wantStatus(t, guards[1], of("s"), 429)
	if _, _, err := operate.New(imposing).Bans(background, "n", "", 10); err != nil { // so that the ban is in the list
		t.Fatal(err)
	}
	if err := core.ReadBanLists(read); err != nil {
		t.Fatal(err)
	}
	o.begin()
	for i, guard := range guards {
		if a := guard.Check(of("s")); status(a) != 429 || a.Refusal.Decision.Reason != core.Banned {
			t.Errorf("process %d: %+v", i, a.Refusal)
		}
	}
}

// Without the right to read the lists, the log says once that this is off, and nothing else changes.
func TestReadingBansWithoutARight(t *testing.T) {
	server := redistest.Start(t)
	var log logtest.Log
	limiter := newLimiter(t, core.Options{Timeout: patient, Logger: log.Logger(), Redis: server.UserWith(t, "~*", "+@all", "-zrange")})
	guard := newGuard(t, limiter, strict)
	for range 3 {
		_ = core.ReadBanLists(limiter)
	}
	if log.Count("level=WARN", "a right to read their lists", failure.RightsPage) != 1 {
		t.Error(log.String())
	}
	wantStatus(t, guard, of("s"), 200)
}

// A process reads only the lists of rules that obey bans or overrides and may refuse somebody.
func TestOnlyListsThatMatterAreRead(t *testing.T) {
	limiter := newLimiter(t, core.Options{Redis: redistest.Start(t).Client(t), Timeout: patient})
	newGuard(t, limiter, core.Rule{Name: "plain", Limit: core.PerHour(5)}, banningRule("dry"), banningRule("soft"))
	newGuard(t, limiter, banningRule("open"), core.Rule{Name: "banning", Limit: core.PerHour(5), Ban: core.Ban{ByHand: true}})
	byHand := core.Ban{ByHand: true}
	newGuard(t, limiter, core.Rule{Paths: []string{"/x/**"}, Limit: core.PerHour(5), Ban: byHand}, core.Rule{Paths: []string{"/y"}, Limit: core.PerHour(5), Ban: byHand, Mode: core.DryRun})
	route, plain := newGuard(t, limiter, core.Rule{Limit: core.PerHour(5), Ban: byHand}), newGuard(t, limiter, core.Rule{Limit: core.PerMinute(5)}, core.Rule{Limit: core.PerDay(5), Ban: byHand, Mode: core.DryRun})
	wantStatus(t, route, newView("GET", "/route"), 200)
	wantStatus(t, plain, newView("GET", "/plain"), 200)
	newGuard(t, limiter, core.Rule{Paths: []string{"/p"}, Limit: core.PerHour(5)})
	_ = limiter.MustCounter("handle", core.PerHour(5)).WithOverrides()
	banned, overridden := core.WatchedBans(limiter)
	slices.Sort(banned)
	slices.Sort(overridden)
	for _, name := range []string{"plain", "/p", "GET /plain"} { // no rule would see it
		if _, err := operate.New(limiter).Ban(background, name, "s", time.Hour); err == nil {
			t.Errorf("a ban from %q succeeds", name)
		}
	}
	if !slices.Equal(banned, []string{"/x/**", "GET /route", "banning", "open"}) || !slices.Equal(overridden, []string{"handle", "open"}) {
		t.Errorf("bans of %q and overrides of %q are read", banned, overridden)
	}
	runtime.KeepAlive([]*core.Guard{route, plain})
}

// A process reads the lists by itself, soon after it has a rule that obeys bans, wherever that comes
// from. One without such a rule never does.
func TestListsAreReadInTheBackground(t *testing.T) {
	server := redistest.Start(t)
	options := core.Options{Redis: server.Client(t), Timeout: patient}
	if _, err := operate.New(newLimiter(t, options)).Ban(background, "open", "s", time.Hour); err != nil {
		t.Fatal(err)
	}
	attached, following, handling, plain := newLimiter(t, options), newLimiter(t, options), newLimiter(t, options), newLimiter(t, options)
	newGuard(t, attached, banningRule("open"))
	newRuleSet(t, following, banningRule("open")).MustGuard("open")
	_ = handling.MustCounter("other", core.PerHour(5)).WithOverrides()
	newGuard(t, plain, core.Rule{Name: "open", Limit: core.PerHour(50)})
	for who, limiter := range map[string]*core.Limiter{"attached": attached, "following": following} {
		eventually(t, who+" knows the ban", func() bool { return core.KnowsBan(limiter, "open", "s") })
	}
	if !core.WatchesBans(attached) || !core.WatchesBans(handling) || core.WatchesBans(plain) || core.WatchesBans(newLimiter(t, core.Options{})) {
		t.Error("the lists are read where no rule obeys them, or not where one does")
	}
}
