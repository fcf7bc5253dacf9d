package operate_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/operate"
)

// An explanation says what the next call gets, by any rules: the reason, the rule and the wait.
func TestExplainAgreesWithCheck(t *testing.T) {
	onBothEngines(t, func(t *testing.T, options core.Options) {
		random := rand.New(rand.NewPCG(14, 2026))
		var events decisions
		options.OnDecision = events.note
		options.Identify = func(r core.Request) (string, error) {
			user, _ := whoSays(r)
			if user == "error" {
				return "", errVerify
			}
			return user, nil
		}
		seen := make(map[core.Reason]int)
		for round := range 100 {
			limiter := newLimiter(t, options)
			rules := drawRules(random, round)
			guard := attach(t, limiter, rules...)
			marked := rules[random.IntN(len(rules))] // one, because marks of two could end at the same time
			for i := range 12 {
				if i%6 == 0 { // before any call, and when some limits are used up
					treatSomebody(t, random, limiter, marked)
				}
				explainThenCheck(t, random, limiter, guard, &events, seen)
			}
		}
		for _, reason := range []core.Reason{
			core.Allowed, core.LimitExceeded, core.Banned, core.Blocked, core.SoftExceeded, core.NotLoggedIn, core.IdentifyFailed, core.CostTooHigh,
		} {
			if seen[reason] == 0 {
				t.Errorf("no call was %s: the test shows too little: %v", reason, seen)
			}
		}
	})
}

// Some refusals precede others, in a call and so in its explanation.
func TestExplainWhatComesFirst(t *testing.T) {
	once := core.PerDay(1).Fixed()
	further := core.Rule{Name: "further", Limit: core.PerDay(5).Fixed(), Also: []core.Limit{core.Per(1, 20*time.Hour).Fixed()}}
	own := further
	own.Name, own.Limit = "own", once
	blocked := core.Rule{Name: "blocked", Limit: once}
	costly := core.Rule{Name: "costly", Limit: once, Cost: cost(2)}
	nobody := core.Rule{Name: "nobody", Limit: once, Key: func(core.Request) (string, error) { return "", errVerify }}
	large := core.Rule{Name: "shared", Limit: core.PerDay(5).Fixed(), Cost: cost(3)}
	strict := core.Rule{Name: "shared", Limit: large.Limit, LimitFor: func(core.Request) (core.Limit, error) { return core.PerDay(3).Fixed(), nil }}
	striking, member := core.Rule{Name: "ip", Limit: once, Ban: core.Ban{After: 1, For: 30 * time.Hour}}, core.Rule{Name: "member", Limit: core.PerDay(9), NeedLogin: true}
	for name, test := range map[string]struct {
		rules  []core.Rule
		reason core.Reason
		rule   string
	}{
		"a limit whose ban does not strike yet":        {[]core.Rule{striking, member}, core.LimitExceeded, "ip"},
		"two rules that refuse only together":          {[]core.Rule{large, strict}, core.LimitExceeded, "shared"},
		"a ban, though a further limit refuses longer": {[]core.Rule{further}, core.Banned, "further"},
		"a ban, though the own limit refuses longer":   {[]core.Rule{own}, core.Banned, "own"},
		"a block beside a cost that never fits":        {[]core.Rule{blocked, costly}, core.Blocked, "blocked"},
		"a call without a subject, which costs much":   {[]core.Rule{costly, nobody}, core.IdentifyFailed, "nobody"},
		"a call without a subject":                     {[]core.Rule{{Name: "limit", Limit: once}, nobody}, core.IdentifyFailed, "nobody"},
	} {
		var events decisions
		limiter := newLimiter(t, core.Options{OnDecision: events.note, Identify: whoSays})
		first := test.rules[0]
		if _, err := limiter.MustCounter(first.Name, first.Limit, first.Also...).Allow(background, me); err != nil { // uses up a limit
			t.Fatal(err)
		}
		guard := attach(t, limiter, test.rules...)
		if test.reason == core.Banned {
			ban(t, limiter, first.Name, me, time.Hour)
		}
		if test.reason == core.Blocked {
			setOverride(t, limiter, first.Name, me, operate.Override{Blocked: true})
		}
		x, err := operate.New(limiter).ExplainView(newView("GET", "/"))
		if err != nil || x.Reason != test.reason || x.Rule != test.rule {
			t.Errorf("%s: %v, %v", name, err, x)
		}
		guard.Check(newView("GET", "/"))
		if d := events.last(t, 2); d.Reason != x.Reason || d.Rule != x.Rule || (d.RetryAfter-x.RetryAfter).Abs() > patient {
			t.Errorf("%s: got %+v, explained as %v", name, d, x)
		}
	}
}

// Of two bans, the longer one refuses the call, and the explanation says so, however long functions take.
func TestTheLongerBanRefuses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var events decisions
		limiter := newLimiter(t, core.Options{OnDecision: events.note})
		slow := func(core.Request) (string, error) {
			time.Sleep(time.Second)
			return me, nil
		}
		guard := attach(t, limiter, core.Rule{Name: "short", Limit: core.PerDay(1)}, core.Rule{Name: "long", Limit: core.PerDay(1), Key: slow})
		ban(t, limiter, "short", me, time.Hour)
		ban(t, limiter, "long", me, time.Hour+time.Millisecond)
		guard.Check(newView("GET", "/"))
		x, err := operate.New(limiter).ExplainView(newView("GET", "/"))
		if d := events.last(t, 1); d.Rule != "long" || x.Rule != "long" || err != nil {
			t.Errorf("got %+v, explained as %v, %v", d, x, err)
		}
	})
}

// An estimate that is above an override is cut in an explanation, too.
func TestExplainCutsEstimates(t *testing.T) {
	onBothEngines(t, func(t *testing.T, options core.Options) {
		limiter, limit := newLimiter(t, options), core.PerDay(1000).Fixed()
		rule := core.Rule{Name: "n", Limit: limit, Estimate: cost(1000), Bill: core.BillTerms{MaxEstimate: 0.25}}
		guard := attach(t, limiter, rule)
		setOverride(t, limiter, "n", me, per(core.PerDay(100).Fixed()))
		for range 4 { // of 25 each
			guard.Check(newView("GET", "/"))
		}
		x, err := operate.New(limiter).ExplainView(newView("GET", "/"))
		if err != nil || x.Reason != core.LimitExceeded || x.Rules[0].Cost != 25 || x.Rules[0].Limits[0].RetryAfter != x.RetryAfter {
			t.Errorf("%v, %+v", err, x)
		}
	})
}

// drawRules returns rules of many kinds. Their windows do not end during the test.
func drawRules(random *rand.Rand, round int) (rules []core.Rule) {
	limits := []core.Limit{core.PerDay(2).Fixed(), core.PerDay(3).Log(), core.PerDay(4).Bucket(2), core.PerDay(5).Fixed()}
	chance := func(n int) bool { return random.IntN(n) == 0 }
	for i := range 1 + random.IntN(3) {
		if i > 0 && chance(4) { // of the same name, by which it shares the counter
			r := rules[0]
			r.Cost, r.NeedLogin, r.Ban = cost(1+random.IntN(3)), chance(4), core.Ban{}
			rules = append(rules, r)
			continue
		}
		r := core.Rule{Name: fmt.Sprintf("%d-%d", round, i), Limit: limits[random.IntN(len(limits))], NeedLogin: chance(4)}
		if chance(3) {
			r.Also = []core.Limit{core.Per(3, 20*time.Hour).Fixed()}
		}
		switch random.IntN(6) {
		case 0:
			r.Ban = core.Ban{After: 1 + random.IntN(2), For: 30 * time.Hour}
		case 1:
			r.Mode = core.DryRun
		case 2, 3:
			r.Mode = core.Soft
		}
		if chance(4) {
			r.Plans = map[string]core.Limit{"pro": {Max: r.Limit.Max + 1, Window: r.Limit.Window, Algorithm: r.Limit.Algorithm, Burst: r.Limit.Burst}, "free": core.Unlimited}
			r.Plan = func(r core.Request) (string, error) { return r.Query("plan"), nil }
		}
		if chance(4) {
			r.Cost = func(r core.Request) int { return int(r.Size()) }
		}
		if chance(5) {
			r.Key = func(r core.Request) (string, error) {
				if r.Query("fail") != "" {
					return "", errVerify
				}
				return core.ByUser(r)
			}
		}
		if chance(4) {
			r.Paths = []string{"/a/**"}
		}
		rules = append(rules, r)
	}
	return rules
}

// treatSomebody bans or overrides a subject of the rule, if it can.
func treatSomebody(t *testing.T, random *rand.Rand, limiter *core.Limiter, r core.Rule) {
	subject := []string{"ip:192.0.2.1", "user:alice"}[random.IntN(2)]
	if random.IntN(6) == 0 {
		ban(t, limiter, r.Name, subject, time.Hour)
	}
	if random.IntN(3) > 0 {
		return
	}
	one, seven := r.Limit, r.Limit
	one.Max, seven.Max = 1, 7
	o := []operate.Override{per(one), per(seven, core.PerDay(9)), {Unlimited: true}, {Blocked: true}, {Blocked: true, Until: time.Now().Add(10 * time.Hour)}}[random.IntN(5)]
	setOverride(t, limiter, r.Name, subject, o)
}

// explainThenCheck compares the explanation of a call with what it gets.
func explainThenCheck(t *testing.T, random *rand.Rand, limiter *core.Limiter, guard *core.Guard, events *decisions, seen map[core.Reason]int) {
	t.Helper()
	v := newView("POST", []string{"/a/b", "/c"}[random.IntN(2)])
	v.Pattern = "" // in front of a router
	v.As([]string{"", "alice", "alice", "error"}[random.IntN(4)]).Asking("plan=" + []string{"", "pro", "free"}[random.IntN(3)])
	if random.IntN(8) == 0 {
		v.URLQuery.Set("fail", "yes")
	}
	v.BodySize = []int64{1, 1, 1, 2, 99, 0, math.MaxInt}[random.IntN(7)]
	x, err := operate.New(limiter).ExplainView(v)
	if err != nil {
		t.Fatal(err)
	}
	events.all = nil
	answer := guard.Check(v)
	d := core.Decision{Reason: core.Allowed}
	if len(events.all) > 0 {
		d = events.last(t, 1)
	}
	if d.Reason == core.Banned && (x.Reason != d.Reason || x.Rule != d.Rule) { // the ban by a rule began in the meantime
		if x, err = operate.New(limiter).ExplainView(v); err != nil {
			t.Fatal(err)
		}
	}
	seen[d.Reason]++
	name, wait := d.Rule, d.RetryAfter
	if d.Reason == core.Allowed {
		name = ""
	}
	if d.RetryAfter > 0 && x.Rule != name && !slices.ContainsFunc(d.All, func(d core.Decision) bool { return d.Rule == x.Rule }) {
		// Rules that count by the address refused the call before it was known who calls.
		for _, r := range x.Rules {
			if r.Name == name && r.Reason == d.Reason {
				x.Reason, x.Rule, x.RetryAfter = r.Reason, name, r.RetryAfter
			}
		}
	}
	if x.Reason != d.Reason || x.Rule != name || (x.RetryAfter-wait).Abs() > patient {
		t.Fatalf("%s %s by %v: got %+v, refused %t; explained as %s by %q, wait %v:\n%v\n%+v",
			v.Verb, v.URLPath, v.Values, d, answer.Refusal != nil, x.Reason, x.Rule, x.RetryAfter, x, guard.Rules())
	}
}
