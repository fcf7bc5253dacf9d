package adaptertest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/accesslimit/accesslimit/core"
)

// loginScenarios are about who is calling.
var loginScenarios = []scenario{
	{name: "login by token", run: loginByToken},
	{name: "login by cookie", run: loginByCookie},
	{name: "login by a value that a middleware stored", run: loginByValue},
	{name: "nobody gets 401", run: nobodyGets401},
	{name: "Identify failing is not a refusal", run: identifyFailing},
	{name: "Identify is asked once, and only when needed", run: identifyOnce},
	{name: "429 comes before 401", run: refusedBeforeLogin},
	{name: "a rule by IP stops many callers who guess tokens", run: triedTokens},
}

// verify knows two users by their tokens.
func verify(_ context.Context, token string) (string, error) {
	users := map[string]string{"alice-token": "alice", "bob-token": "bob", "alice-session": "alice"}
	if token == "broken" {
		return "", errors.New("the session store is down")
	}
	return users[token], nil
}

func identifiedBy(identify func(core.Request) (string, error)) func(*core.Options) {
	return func(o *core.Options) { o.Identify = identify }
}

// replies serves one route, for users only. Each may call it twice in ten minutes.
func (s *site) replies(t *testing.T, identify func(core.Request) (string, error), values map[string]string) {
	t.Helper()
	s.serve(t, App{Limiter: s.limiter(t, identifiedBy(identify)), Values: values, Routes: []Route{{
		Path: "/shop/reply", limits: limit(core.Rule{Seconds: 600, MaxCount: 2, NeedLogin: true}),
	}}})
}

func loginByToken(t *testing.T, s *site) {
	s.replies(t, core.BearerToken(verify), nil)
	s.want(t, 200, "/shop/reply", "Authorization: Bearer alice-token")
	s.want(t, 200, "/shop/reply", "Authorization: bearer alice-token")
	s.want(t, 429, "/shop/reply", "Authorization: Bearer alice-token")
	s.want(t, 200, "/shop/reply", "Authorization: Bearer bob-token")
	s.want(t, 401, "/shop/reply", "Authorization: Bearer unknown")
	s.want(t, 401, "/shop/reply", "Authorization: Basic alice-token")
	s.want(t, 401, "/shop/reply", "Authorization: Basic bob-token", "Authorization: Bearer bob-token")
	s.want(t, 429, "/shop/reply", "Authorization: Bearer alice-token", "Authorization: Bearer bob-token")
	s.want(t, 200, "/shop/reply", "Authorization: Bearer bob-token", "Authorization: Bearer alice-token")
	s.want(t, 429, "/shop/reply", "Authorization: Bearer bob-token", "Authorization: Bearer unknown")
}

func loginByCookie(t *testing.T, s *site) {
	s.replies(t, core.FirstOf(core.BearerToken(verify), core.Cookie("session", verify)), nil)
	s.want(t, 200, "/shop/reply", "Cookie: theme=dark; session=alice-session")
	s.want(t, 200, "/shop/reply", "Authorization: Bearer alice-token") // the same user, and the same counter
	s.want(t, 429, "/shop/reply", "Cookie: session=alice-session")
	s.want(t, 401, "/shop/reply", "Cookie: session=stolen")
}

func loginByValue(t *testing.T, s *site) {
	s.replies(t, core.ContextValue("user"), map[string]string{"user": "carol"})
	s.want(t, 200, "/shop/reply")
	s.want(t, 200, "/shop/reply")
	s.want(t, 429, "/shop/reply")
}

func nobodyGets401(t *testing.T, s *site) {
	s.replies(t, core.BearerToken(verify), nil)
	for range 4 { // nothing is charged, so no 429 ever
		reply := s.want(t, 401, "/shop/reply")
		if !s.adapter.RPC {
			wantHeader(t, reply, "Www-Authenticate", "Bearer")
		}
	}
}

func identifyFailing(t *testing.T, s *site) {
	s.replies(t, core.BearerToken(verify), nil)
	reply := s.want(t, 503, "/shop/reply", "Authorization: Bearer broken")
	wantHeader(t, reply, "Retry-After", "1")
}

func identifyOnce(t *testing.T, s *site) {
	var asked atomic.Int32
	count := func(r core.Request) (string, error) {
		asked.Add(1)
		return core.BearerToken(verify)(r)
	}
	user := core.Rule{Name: "user", Seconds: 600, NeedLogin: true}
	key := core.Rule{Name: "key", Seconds: 600, Key: core.ByUser}
	s.serve(t, App{Limiter: s.limiter(t, identifiedBy(count)), Routes: []Route{
		{Path: "/shop/reply", limits: limit(user, key)},
		{Path: "/shop/list", limits: limit(core.Rule{Name: "list", Seconds: 600})},
	}})
	s.want(t, 200, "/shop/reply", "Authorization: Bearer alice-token")
	if n := asked.Load(); n != 1 {
		t.Errorf("Identify was asked %d times, want once", n)
	}
	s.want(t, 200, "/shop/list", "Authorization: Bearer alice-token")
	if n := asked.Load(); n != 1 {
		t.Error("Identify was asked for a call that needs no user")
	}
}

func refusedBeforeLogin(t *testing.T, s *site) {
	ip := core.Rule{Name: "ip", Seconds: 600, MaxCount: 2}
	user := core.Rule{Name: "user", Seconds: 600, NeedLogin: true}
	s.serve(t, App{Limiter: s.limiter(t, identifiedBy(core.BearerToken(verify))), Routes: []Route{
		{Path: "/shop/stacked", limits: [][]core.Rule{{ip}, {user}}},
	}})
	s.want(t, 401, "/shop/stacked") // the rule by IP keeps the charge, to protect the login
	s.want(t, 401, "/shop/stacked")
	s.want(t, 429, "/shop/stacked")
}

// triedTokens lets many callers guess tokens at once, with a rule by IP before the login. Identify
// must be called once for each call that the rule by IP lets pass, and for no other, however many
// rules need the user.
func triedTokens(t *testing.T, s *site) {
	const tries, callers, most = 160, 8, 20
	var asked atomic.Int32
	identify := func(r core.Request) (string, error) {
		asked.Add(1)
		return core.BearerToken(verify)(r)
	}
	user := core.Rule{Name: "user", Seconds: 600, MaxCount: 100, NeedLogin: true}
	s.serve(t, App{Limiter: s.limiter(t, identifiedBy(identify)), Routes: []Route{{Path: "/shop/reply", limits: [][]core.Rule{
		{{Name: "ip", Seconds: 600, MaxCount: most}}, askingAgain(user),
	}}}})
	for range 3 {
		s.want(t, 200, "/shop/reply", "Authorization: Bearer alice-token")
	}
	var statuses [600]atomic.Int32
	var crowd sync.WaitGroup
	for caller := range callers {
		crowd.Go(func() {
			for i := range tries / callers {
				statuses[s.get(t, "/shop/reply", fmt.Sprintf("Authorization: Bearer guess-%d-%d", caller, i)).Status].Add(1)
			}
		})
	}
	crowd.Wait()
	s.want(t, 429, "/shop/reply", "Authorization: Bearer alice-token")
	if statuses[401].Load() != most-3 || statuses[429].Load() != tries-(most-3) {
		t.Errorf("of %d tries, %d got 401 and %d got 429; want %d times 401, and 429 otherwise", tries, statuses[401].Load(), statuses[429].Load(), most-3)
	}
	if n := asked.Load(); n != most {
		t.Errorf("Identify was asked %d times, want once for each of the %d calls that the rule by IP let pass", n, most)
	}
}

// askingAgain returns rules for one middleware. Each needs the user for a different reason.
func askingAgain(user core.Rule) []core.Rule {
	byUser := func(r core.Request) string { name, _ := r.User(); return name }
	again, key, cost, plan, note, tried := user, user, user, user, user, user
	again.Name = "again"
	key.Name, key.NeedLogin, key.Key = "key", false, core.Join(core.ByUser, core.ByIP)
	cost.Name, cost.Cost = "cost", func(r core.Request) int { return len(byUser(r)) }
	plan.Name, plan.LimitFor = "plan", func(r core.Request) (core.Limit, error) { return core.PerHour(100 + len(byUser(r))), nil }
	note.Name, note.Seconds, note.MaxCount, note.Note = "note", 0, 0, byUser
	note.Limit = core.PerHour(100).Log()
	tried.Name, tried.Mode = "tried", core.DryRun
	return []core.Rule{user, again, key, cost, plan, note, tried}
}
