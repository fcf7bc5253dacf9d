package core_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/adapter"
	"github.com/accesslimit/accesslimit/core/operate"
	"github.com/accesslimit/accesslimit/internal/logtest"
	"github.com/accesslimit/accesslimit/internal/redistest"
)

func TestIdentifyFails(t *testing.T) {
	for name, rule := range map[string]core.Rule{
		"NeedLogin": {Name: "n", Seconds: 3600, NeedLogin: true},
		"ByUser":    {Name: "n", Seconds: 3600, Key: core.ByUser},
		"Join":      {Name: "n", Seconds: 3600, Key: core.Join(core.ByIP, core.ByUser)},
		"FailOpen":  {Name: "n", Seconds: 3600, NeedLogin: true, OnStoreError: core.FailOpen},
	} {
		t.Run(name, func(t *testing.T) {
			var log logtest.Log
			var heard decisions
			limiter := newLimiter(t, core.Options{
				Logger: log.Logger(), OnDecision: heard.note,
				Identify: func(core.Request) (string, error) { return "alice", errVerify },
			})
			guard := newGuard(t, limiter, core.Rule{Name: "sound", Seconds: 3600}, rule)
			for range 3 {
				answer := wantStatus(t, guard, newView("GET", "/"), 503)
				if answer.Refusal.Code != 14 || answer.Refusal.RetryAfter <= 0 {
					t.Errorf("%+v", answer.Refusal)
				}
			}
			if d := heard.last(t, 3); d.Reason != core.IdentifyFailed || d.Allowed || d.Rule != "n" || d.Source != core.FromNobody {
				t.Errorf("%+v", d)
			}
			wantLeft(t, limiter, "sound", "ip:192.0.2.1", core.PerHour(5), 5)
			if log.Count("level=WARN", "could not be identified, and was refused", errVerify.Error(), "rule=n") != 1 {
				t.Errorf("want one line with the cause, got: %s", log.String())
			}
			setOverride(t, limiter, "sound", "ip:192.0.2.1", operate.Override{Blocked: true})
			if answer := wantStatus(t, guard, newView("GET", "/"), 429); answer.Refusal.Decision.Reason != core.Blocked {
				t.Errorf("%+v, want that the address is blocked", answer.Refusal.Decision)
			}
		})
	}
}

// A Key that fails is logged as that, and not as a caller who could not be identified. The line says
// what became of the call.
func TestAFailingKeyIsLogged(t *testing.T) {
	key := func(core.Request) (string, error) { return "", errors.New("the tenants cannot be read") }
	for then, rule := range map[string]core.Rule{
		"the caller was refused":      {Name: "n", Seconds: 60, Key: key},
		"refuses nobody, uncounted":   {Name: "n", Seconds: 60, Key: key, Mode: core.Soft},
		"the caller was refused, too": {Name: "n", Seconds: 60, Key: core.Join(core.ByUser, key)},
	} {
		var log logtest.Log
		guard := newGuard(t, newLimiter(t, core.Options{Logger: log.Logger(), Identify: whoSays}), rule)
		guard.Check(newView("GET", "/"))
		if log.Count("level=WARN", "a rule's Key failed", strings.TrimSuffix(then, ", too"), "the tenants cannot be read") != 1 || log.Count("identified") > 0 {
			t.Errorf("%s: %s", then, log.String())
		}
	}
}

// If a caller leaves while being identified, the call has ended, and nothing has failed.
func TestIdentifyFailsBecauseTheCallerLeft(t *testing.T) {
	var log logtest.Log
	limiter := newLimiter(t, core.Options{Logger: log.Logger(), Identify: func(r core.Request) (string, error) {
		r.Value("leave").(context.CancelFunc)()
		return "", errors.New("cannot ask")
	}})
	guard := newGuard(t, limiter, core.Rule{Name: "n", Seconds: 1, NeedLogin: true})
	v := newView("GET", "/")
	ctx, leave := context.WithCancel(v.Ctx)
	v.Ctx, v.Values["leave"] = ctx, leave
	answer := wantStatus(t, guard, v, 503)
	if answer.Refusal.Decision.Reason != core.ContextEnded || answer.Refusal.Code != 1 || answer.Refusal.RetryAfter != 0 {
		t.Errorf("%+v", answer.Refusal)
	}
	if log.Count("could not be identified") != 0 {
		t.Errorf("a caller who left is logged: %s", log.String())
	}
}

var errVerify = errors.New("the session store is down")

// verify knows alice's token and cookie, and fails for "down".
func verify(_ context.Context, token string) (string, error) {
	switch token {
	case "alice-token", "alice-session", "two words":
		return "alice", nil
	case "down":
		return "", errVerify
	}
	return "", nil
}

// identified returns the result of an Identify function for a call, through the limiter as in a
// service.
func identified(t *testing.T, identify func(core.Request) (string, error), v adapter.View) (user string, err error) {
	t.Helper()
	limiter := newLimiter(t, core.Options{Identify: identify})
	guard := newGuard(t, limiter, core.Rule{Name: "n", Seconds: 1, Key: func(r core.Request) (string, error) {
		user, err = r.User()
		return "", nil
	}})
	wantStatus(t, guard, v, 200)
	return user, err
}

func TestIdentify(t *testing.T) {
	call := func() *fakeView { return newView("GET", "/") }
	bearer, cookie := core.BearerToken(verify), core.Cookie("session", verify)
	for _, test := range []struct {
		name     string
		identify func(core.Request) (string, error)
		view     *fakeView
		user     string
		fails    bool
	}{
		{"bearer", bearer, call().With("Authorization", "Bearer alice-token"), "alice", false},
		{"scheme in small letters, more spaces", bearer, call().With("Authorization", "bearer   alice-token "), "alice", false},
		{"bearer of two words", bearer, call().With("Authorization", "Bearer two words"), "alice", false},
		{"wrong token", bearer, call().With("Authorization", "Bearer nobody"), "", false},
		{"no header", bearer, call(), "", false},
		{"no token", bearer, call().With("Authorization", "Bearer "), "", false},
		{"only the scheme", bearer, call().With("Authorization", "Bearer"), "", false},
		{"only the token", bearer, call().With("Authorization", "alice-token"), "", false},
		{"another scheme", bearer, call().With("Authorization", "Basic alice-token"), "", false},
		{"no space", bearer, call().With("Authorization", "Beareralice-token"), "", false},
		{"the first of two headers", bearer, call().With("Authorization", "Bearer alice-token").With("Authorization", "Bearer bob-token"), "alice", false},
		{"the second of two headers", bearer, call().With("Authorization", "Basic a").With("Authorization", "Bearer alice-token"), "", false},
		{"verify fails", bearer, call().With("Authorization", "Bearer down"), "", true},

		{"cookie", cookie, call().With("Cookie", "a=b; session=alice-session; c=d"), "alice", false},
		{"cookie in quotes", cookie, call().With("Cookie", `session="alice-session"`), "alice", false},
		{"cookie on the second line", cookie, call().With("Cookie", "a=b").With("Cookie", "session=alice-session"), "alice", false},
		{"the first of two", cookie, call().With("Cookie", "session=nobody; session=alice-session"), "", false},
		{"no cookie", cookie, call(), "", false},
		{"other case", cookie, call().With("Cookie", "Session=alice-session"), "", false},
		{"empty cookie", cookie, call().With("Cookie", "session="), "", false},
		{"rubbish", cookie, call().With("Cookie", ";;=;\x00"), "", false},
		{"verify fails for a cookie", cookie, call().With("Cookie", "session=down"), "", true},

		{"value of a middleware", whoSays, call().As("alice"), "alice", false},
		{"no value", whoSays, call(), "", false},

		{"first of none", core.FirstOf(), call(), "", false},
		{"the first knows", core.FirstOf(bearer, cookie), call().With("Authorization", "Bearer alice-token").With("Cookie", "session=down"), "alice", false},
		{"the second knows", core.FirstOf(bearer, cookie), call().With("Cookie", "session=alice-session"), "alice", false},
		{"the first fails", core.FirstOf(bearer, cookie), call().With("Authorization", "Bearer down").With("Cookie", "session=alice-session"), "", true},
		{"none knows", core.FirstOf(bearer, cookie, whoSays), call(), "", false},

		{"Identify unset", nil, call().As("alice"), "", false},
		{"a user beside an error is none", func(core.Request) (string, error) { return "alice", errVerify }, call(), "", true},
	} {
		t.Run(test.name, func(t *testing.T) {
			user, err := identified(t, test.identify, test.view)
			if user != test.user || (err != nil) != test.fails || test.fails && !errors.Is(err, errVerify) {
				t.Errorf("%q, %v; want %q, error %v", user, err, test.user, test.fails)
			}
		})
	}
}

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
			wantStatus(t, guard, newView("GET", "/").As("alice"), 200)
			for _, who := range []string{"alice", "bob", ""} {
				restart()
				wantStatus(t, guard, newView("GET", "/").As(who), 429)
				begun, before := time.Now(), limiter.Stats().Trips
				asked = 0
				for range 100 {
					d := wantStatus(t, guard, newView("GET", "/").As(who), 429).Refusal.Decision
					if d.Rule != "ip" || d.RetryAfter < time.Minute {
						t.Fatalf("%+v", d)
					}
				}
				// A refusal is remembered for a second.
				most := 1 + int(time.Since(begun)/time.Second)
				if name == "with a ban" && who == "" {
					asked = 0 // anonymous calls did not count for the ban, and those of a user must
				}
				if trips := int(limiter.Stats().Trips - before); asked > most || trips > most {
					t.Errorf("%q: Identify was asked %d times and Redis %d times for 100 calls, want %d at most", who, asked, trips, most)
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
			wantStatus(t, guard, newView("GET", "/").As("alice"), 200)
			for range 3 {
				if d := wantStatus(t, guard, newView("GET", "/").As("alice"), 429).Refusal.Decision; d.Rule != test.binds {
					t.Errorf("%+v", d)
				}
			}
			awaitDryRuns(t, limiter)
			heard.last(t, 4*test.heard)
			// The same limit has refused another call, but this rule need not count that one.
			if test.name == "tried" {
				wantStatus(t, newGuard(t, limiter, ip, core.Rule{Name: "live", Seconds: 60, NeedLogin: true}), newView("GET", "/").As("alice"), 429)
				wantStatus(t, guard, newView("GET", "/").As("alice"), 429)
				awaitDryRuns(t, limiter)
				heard.last(t, 4*test.heard+1+test.heard)
			}
			if test.name == "dear" {
				wantStatus(t, guard, newView("GET", "/").As("alice").With("Dear", "1"), 400)
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

// If a middleware leaves something other than the user's name under the key, one line of the log
// says so.
func TestWarnsOfAValueThatIsNoString(t *testing.T) {
	type userID int
	var log logtest.Log
	limiter := newLimiter(t, core.Options{Logger: log.Logger(), Identify: core.ContextValue("user")})
	guard := newGuard(t, limiter, core.Rule{Name: "n", Seconds: 3600, NeedLogin: true})
	for range 3 {
		v := newView("GET", "/")
		v.Values = map[any]any{"user": userID(7)}
		wantStatus(t, guard, v, 401)
	}
	warned(t, &log, 1, "level=WARN", "ContextValue ignores a value that is not a string", "key=user", "type=core_test.userID")
}

// A limiter in front of the authentication refuses everybody, and the log says so once. If anybody
// was logged in, there is no such mistake.
func TestWarnsOfCallsWithoutLogin(t *testing.T) {
	for first, mode := range map[string]core.Mode{"": core.Enforce, "nobody, but lenient": core.DryRun, "alice": core.Enforce} {
		t.Run(first, func(t *testing.T) {
			var log logtest.Log
			limiter := newLimiter(t, core.Options{Logger: log.Logger(), Identify: core.ContextValue("user")})
			guard := newGuard(t, limiter, core.Rule{Name: "n", Seconds: 3600, NeedLogin: true, Mode: mode})
			lines := 1
			if first == "alice" {
				v := newView("GET", "/")
				v.Values = map[any]any{"user": first}
				guard.Check(v)
				lines = 0
			}
			for range 299 {
				guard.Check(newView("GET", "/"))
			}
			warned(t, &log, 0, "level=WARN")
			for range 400 {
				guard.Check(newView("GET", "/"))
			}
			warned(t, &log, lines, "level=WARN", "no call that needed a login had one", "calls=300", "rule=n")
		})
	}
}
