package core_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/internal/algorithm"
	"github.com/accesslimit/accesslimit/core/internal/failure"
	"github.com/accesslimit/accesslimit/core/operate"
	"github.com/accesslimit/accesslimit/internal/logtest"
	"github.com/accesslimit/accesslimit/internal/redistest"
)

// operator sets overrides of one rule, whose own limit is given, and the further ones.
type operator struct {
	testing.TB
	limiter *core.Limiter
	name    string
	own     core.Limit
	also    []core.Limit
}

func (o operator) set(subject string, override operate.Override) {
	o.Helper()
	setOverride(o, o.limiter, o.name, subject, override)
}

// max gives a subject another number of permits.
func (o operator) max(subject string, most int) {
	o.Helper()
	limit := o.own
	if limit.Max = most; limit.Burst > 0 {
		limit.Burst = most
	}
	o.set(subject, operate.Override{Limits: append([]core.Limit{limit}, o.also...)})
}

func (o operator) lift(subject string) { o.set(subject, operate.Override{Unlimited: true}) }

func (o operator) block(subject string, until time.Time) {
	o.set(subject, operate.Override{Blocked: true, Until: until})
}

func (o operator) remove(subject string) {
	o.Helper()
	overrides, err := operate.New(o.limiter).Overrides(o.name)
	if err == nil {
		_, err = overrides.Remove(background, subject)
	}
	if err != nil {
		o.Fatal(err)
	}
}

// outage is a deployment of Redis that a test ends.
type outage struct {
	connect func(t *testing.T) redis.UniversalClient
	servers []*redistest.Server
}

func (o *outage) begin() {
	for _, server := range o.servers {
		server.Kill()
	}
}

// onEveryOutage runs a test on each deployment of Redis.
func onEveryOutage(t *testing.T, test func(t *testing.T, o *outage)) {
	t.Run("redis", func(t *testing.T) {
		server := redistest.Start(t)
		test(t, &outage{func(t *testing.T) redis.UniversalClient {
			return server.Client(t, func(o *redis.Options) { o.DialerRetries = 1 })
		}, []*redistest.Server{server}})
	})
	t.Run("ring", func(t *testing.T) {
		ring := redistest.StartRing(t, 2)
		test(t, &outage{func(t *testing.T) redis.UniversalClient {
			return ring.Client(t, func(o *redis.RingOptions) { o.DialerRetries = 1 })
		}, ring.Nodes()})
	})
	t.Run("cluster", func(t *testing.T) {
		cluster := redistest.StartCluster(t)
		test(t, &outage{func(t *testing.T) redis.UniversalClient {
			return cluster.Client(t, func(o *redis.ClusterOptions) { o.DialerRetries = 1 })
		}, cluster.Nodes()})
	})
}

func ofSubject(r core.Request) (string, error) { return r.Header("Subject")[0], nil }

func of(subject string) *fakeView { return newView("GET", "/").With("Subject", subject) }

// markings are rules that obey marks: one for each StorePolicy, and those that refuse nobody.
var markings = map[string]core.Rule{
	"open":   {OnStoreError: core.FailOpen},
	"closed": {OnStoreError: core.FailClosed},
	"local":  {OnStoreError: core.CountLocally(1)},
	"login":  {OnStoreError: core.FailOpen, NeedLogin: true},
	"dry":    {Mode: core.DryRun},
	"soft":   {Mode: core.Soft},
}

// marked are the subjects whom markAll marks.
var marked = map[string]core.Reason{"banned": core.Banned, "blocked": core.Blocked, "outcast": core.Blocked}

func markAll(t *testing.T, limiter *core.Limiter) {
	for rule := range markings {
		ban(t, limiter, rule, "banned", time.Hour)
		setOverride(t, limiter, rule, "blocked", operate.Override{Blocked: true, Until: time.Now().Add(time.Hour)})
		setOverride(t, limiter, rule, "outcast", operate.Override{Blocked: true})
	}
}

// A ban or a block holds in this process at once, and in others within a second. It is answered without
// Redis, so it outlasts an outage, under every policy and in every method of handles. Nobody else is
// refused for it.
func TestMarksHoldEverywhere(t *testing.T) {
	onEveryOutage(t, func(t *testing.T, o *outage) {
		var acting, reading markedProcess
		acting.start(t, o)
		markAll(t, acting.limiter)
		reading.start(t, o)
		acting.wantRefused("in the acting process")
		reading.wantRefused("before all marks are read")
		if err := core.ReadMarks(reading.limiter); err != nil {
			t.Fatal(err)
		}
		o.begin()
		for who, p := range map[string]*markedProcess{"acting": &acting, "reading": &reading} {
			p.wantRefused(who)
			for rule, want := range map[string]int{"open": 200, "closed": 503, "local": 200, "login": 200, "dry": 200, "soft": 200} {
				if got := status(p.check(rule, "somebody")); got != want {
					t.Errorf("%s: somebody by %s in the outage: %d, want %d", who, rule, got, want)
				}
			}
		}
	})
}

// markedProcess is a process with all markings.
type markedProcess struct {
	*testing.T
	limiter   *core.Limiter
	guards    map[string]*core.Guard
	decisions decisions
}

func (p *markedProcess) start(t *testing.T, o *outage) {
	p.T, p.guards = t, make(map[string]*core.Guard)
	p.limiter = newLimiter(t, core.Options{
		Redis: o.connect(t), Timeout: patient, OnDecision: p.decisions.note,
		Identify: func(core.Request) (string, error) { return "alice", nil },
	})
	for name, rule := range markings {
		rule.Name, rule.Limit, rule.Key = name, core.PerHour(50), ofSubject
		p.guards[name] = newGuard(t, p.limiter, rule)
	}
}

func (p *markedProcess) check(rule, subject string) core.Answer {
	answer := p.guards[rule].Check(of(subject))
	awaitDryRuns(p, p.limiter)
	return answer
}

// wantRefused checks that each rule which refuses anybody refuses the marked subjects, and says why and
// for how long, and that the others say what they would have done.
func (p *markedProcess) wantRefused(who string) {
	p.Helper()
	for subject, reason := range marked {
		for rule := range markings {
			p.decisions.heard = nil
			answer := p.check(rule, subject)
			d := p.decisions.last(p, 1)
			switch {
			case rule == "dry" || rule == "soft":
				if want := map[string]core.Reason{"dry": core.DryRunExceeded, "soft": core.SoftExceeded}[rule]; answer.Refusal != nil || d.Reason != want || d.Source != core.FromMarks {
					p.Errorf("%s: %s by %s: %+v", who, subject, rule, d)
				}
			case answer.Refusal == nil || d.Reason != reason || d.Source != core.FromMarks || (d.RetryAfter == 0) != (subject == "outcast") || d.RetryAfter > time.Hour:
				p.Errorf("%s: %s by %s: %+v", who, subject, rule, d)
			}
		}
		p.wantHandlesRefuse(subject, reason)
	}
}

func (p *markedProcess) wantHandlesRefuse(subject string, reason core.Reason) {
	p.Helper()
	bucket := core.PerHour(50).Bucket(5)
	for _, policy := range []core.StorePolicy{{}, core.FailOpen, core.CountLocally(1)} {
		counter, pacer := p.limiter.MustCounter("open", core.PerHour(50)).WithStorePolicy(policy), p.limiter.MustPacer("open", bucket).WithStorePolicy(policy)
		slots := p.limiter.MustSlots("open", 5).WithStorePolicy(policy)
		for what, ask := range map[string]func() (core.Decision, error){
			"Allow":    func() (core.Decision, error) { return counter.Allow(background, subject) },
			"With":     func() (core.Decision, error) { return counter.With(core.Unlimited).Allow(background, subject) },
			"too much": func() (core.Decision, error) { return counter.AllowN(background, subject, 51) },
			"Peek":     func() (core.Decision, error) { return counter.Peek(background, subject) },
			"Charge":   func() (core.Decision, error) { return counter.Charge(background, subject, 3) },
			"Reserve":  func() (core.Decision, error) { return pacer.Reserve(background, subject, 1) },
			"Open":     func() (d core.Decision, err error) { _, d, err = counter.Open(background, subject, 1); return d, err },
			"Hold":     func() (d core.Decision, err error) { _, d, err = slots.Hold(background, subject); return d, err },
			"AllowUpTo": func() (core.Decision, error) {
				granted, d, err := counter.AllowUpTo(background, subject, 3)
				if granted != 0 {
					p.Errorf("%d were granted to %s", granted, subject)
				}
				return d, err
			},
		} {
			if d, err := ask(); err != nil || d.Allowed || d.Reason != reason || d.Source != core.FromMarks || (d.RetryAfter == 0) != (subject == "outcast") {
				p.Errorf("%s of %s with the policy %q: %+v, %v", what, subject, policy, d, err)
			}
		}
	}
}

// A process follows the marks of others by itself, whether it has guards, a set or handles.
func TestMarksAreFollowed(t *testing.T) {
	server := redistest.Start(t)
	process := func() *core.Limiter { return newLimiter(t, core.Options{Redis: server.Client(t), Timeout: patient}) }
	acting, attached, following, handling := process(), process(), process(), process()
	rule := named("n", core.PerHour(50))
	checks := map[string]func() bool{}
	for who, guard := range map[string]*core.Guard{"a guard": newGuard(t, attached, rule), "a set": newRuleSet(t, following, rule).MustGuard("n")} {
		checks[who] = func() bool { return status(guard.Check(newView("GET", "/"))) == 429 }
	}
	counter := handling.MustCounter("n", core.PerHour(50))
	checks["a handle"] = func() bool { d, _ := counter.Peek(background, me); return d.Reason == core.Banned }
	for _, limiter := range []*core.Limiter{attached, following, handling} {
		if err := core.ReadMarks(limiter); err != nil { // so that no call asks for its own
			t.Fatal(err)
		}
	}
	ban(t, acting, "n", me, time.Hour)
	for who, refuses := range checks {
		eventually(t, who+" obeys", refuses)
	}
}

// A rule's ban begins after the answer: the refusal that leads to it is the limit's own. Then it holds
// in all processes, for all limits and plans, also while Redis does not answer.
func TestABanOfARule(t *testing.T) {
	strict := core.Rule{
		Name: "n", Limit: core.PerDay(1).Fixed(), Ban: core.Ban{After: 1, For: time.Hour}, Key: ofSubject,
		Plans: map[string]core.Limit{"staff": core.Unlimited},
		Plan:  func(r core.Request) (string, error) { return strings.Join(r.Header("Plan"), ""), nil },
	}
	refuses := func(guard *core.Guard, reason core.Reason) {
		t.Helper()
		if a := guard.Check(of("s")); a.Refusal == nil || a.Refusal.Decision.Reason != reason {
			t.Errorf("%+v, want %s", a.Refusal, reason)
		}
	}
	memory := newGuard(t, newLimiter(t, core.Options{}), strict)
	wantServed(t, memory, of("s"), ok, 200)
	refuses(memory, core.LimitExceeded)
	refuses(memory, core.Banned)

	server := redistest.Start(t)
	process := func() (*core.Limiter, *core.Guard) {
		limiter := newLimiter(t, core.Options{Timeout: patient, Redis: server.Client(t, func(o *redis.Options) { o.DialerRetries = 1 })})
		return limiter, newGuard(t, limiter, strict)
	}
	one, refusing := process()
	_, other := process()
	wantServed(t, refusing, of("s"), ok, 200)
	refuses(refusing, core.LimitExceeded)
	for _, guard := range []*core.Guard{refusing, other} {
		eventually(t, "the ban holds", func() bool { return status(guard.Check(of("s").With("Plan", "staff"))) == 429 })
		refuses(guard, core.Banned)
	}
	server.Kill()
	refuses(refusing, core.Banned)
	refuses(other, core.Banned)
	if d, err := one.MustCounter("n", core.PerHour(9)).Allow(background, "s"); err != nil || d.Reason != core.Banned {
		t.Errorf("a handle of the name: %+v, %v", d, err)
	}
}

// A mark of a network holds for all callers in it, whatever a rule counts by. Longer networks go before
// shorter ones, and blocks before all.
func TestMarksOfNetworks(t *testing.T) {
	limiter := newLimiter(t, core.Options{Identify: whoSays})
	guard := newGuard(t, limiter, core.Rule{Name: "n", Limit: core.PerHour(1), Key: core.ByUser})
	o := operator{t, limiter, "n", core.PerHour(1), nil}
	o.block("ip:203.0.113.0/24", time.Time{})
	o.lift("ip:203.0.113.128/25")
	o.max("ip:2001:db8::/32", 2)
	for _, test := range []struct {
		peer string
		want []int
	}{
		{"203.0.113.7", []int{429}}, {"203.0.113.200", []int{200, 200, 200}}, {"203.0.112.7", []int{200, 429}}, {"2001:db8::7", []int{200, 200, 429}},
	} {
		wantServed(t, guard, by("user of "+test.peer).From(test.peer), ok, test.want...)
	}
	o.block("user:a", time.Time{})
	wantServed(t, guard, by("a").From("203.0.113.200"), ok, 429)
	if d, err := limiter.MustCounter("n", core.PerHour(1)).Allow(background, "ip:203.0.113.7"); err != nil || d.Reason != core.Blocked {
		t.Errorf("%+v, %v", d, err)
	}
}

// A caller who is blocked is told so, for how long if the block ends, and of no limit.
func TestBlocked(t *testing.T) {
	limiter := newLimiter(t, core.Options{Identify: whoSays})
	rule := byUser("api")
	rule.Cost = cost(3) // a block goes before a cost that never fits
	guard, o := newGuard(t, limiter, rule), operator{t, limiter, "api", core.PerHour(2), nil}
	wantStatus(t, guard, by("a"), 400)
	for until, message := range map[time.Time]string{{}: "Calls are refused.", time.Now().Add(time.Hour): "Calls are refused for another "} {
		o.block("user:a", until)
		refusal := wantStatus(t, guard, by("a"), 429).Refusal
		if d := refusal.Decision; d.Reason != core.Blocked || (d.RetryAfter > 0) == until.IsZero() || refusal.RetryAfter != d.RetryAfter || refusal.Code != 8 {
			t.Errorf("until %v: %+v", until, refusal)
		}
		if !strings.HasPrefix(refusal.Message, message) || len(refusal.Violated) > 0 {
			t.Errorf("the caller is told %q, %v", refusal.Message, refusal.Violated)
		}
	}
	wantStatus(t, newGuard(t, limiter, change(rule, func(r *core.Rule) { r.Cost = cost(0) })), by("a"), 429)
}

// Nobody is told a time that a block without an end has not, nor is the caller of a soft rule, who passes.
func TestHeadersOfBlocks(t *testing.T) {
	limiter := newLimiter(t, core.Options{Headers: core.HeadersDraft10})
	for _, mode := range []core.Mode{core.Enforce, core.Soft} {
		rule := core.Rule{Name: mode.String(), Limit: core.PerHour(2), Mode: mode}
		setOverride(t, limiter, rule.Name, me, operate.Override{Blocked: true})
		v := newView("GET", "/")
		answer := newGuard(t, limiter, rule).Check(v)
		if answer.Refusal != nil {
			answer.Refusal.SetHeader(v.Response)
		}
		if got, want := v.Response.Get("RateLimit"), fmt.Sprintf(`"%s";r=0`, rule.Name); got != want || v.Response.Get("Retry-After") != "" || (answer.Refusal == nil) != (mode == core.Soft) {
			t.Errorf("%v, %+v, want %s", v.Response, answer.Refusal, want)
		}
	}
}

// Counters obey the overrides of their name, which take the place of all limits.
func TestOverridesOfCounters(t *testing.T) {
	onBothEngines(t, func(t *testing.T, options core.Options, _ core.Source) {
		limiter := newLimiter(t, options)
		replies := limiter.MustCounter("reply", core.PerHour(2), core.PerDay(50))
		o := operator{t, limiter, "reply", core.PerHour(2), []core.Limit{core.PerDay(9).Log()}}
		o.max("s", 5)
		if d, err := replies.AllowN(background, "s", 3); err != nil || d.Limit != core.PerHour(5) || d.Remaining != 2 || len(d.All) != 2 {
			t.Errorf("%+v", d)
		} else if err := limiter.Refund(background, d, 2); err != nil {
			t.Error(err)
		}
		if _, err := replies.AllowN(background, "s", 6); !errors.Is(err, core.ErrCostExceedsLimit) || !strings.Contains(err.Error(), "6 of 5/h") {
			t.Errorf("more than the override: %v", err)
		}
		if n, d, err := replies.AllowUpTo(background, "s", 100); n != 4 || err != nil || d.Limit != core.PerHour(5) {
			t.Errorf("%d, %+v, %v", n, d, err)
		}
		if d, err := replies.Charge(background, "s", 1); !errors.Is(err, core.ErrDebtExceeded) || d.Limit != core.PerHour(2) {
			t.Errorf("a log cannot be in debt, so the own limits are charged: %+v, %v", d, err)
		}
		if changed, err := replies.Reset(background, "s"); !changed || err != nil {
			t.Errorf("%t, %v", changed, err)
		}
		if n, _, err := replies.AllowUpTo(background, "s", 100); n != 5 || err != nil {
			t.Errorf("%d after a Reset, %v", n, err)
		}
		o.lift("s")
		if n, d, err := replies.AllowUpTo(background, "s", 100); n != 100 || err != nil || d.Limit != core.Unlimited {
			t.Errorf("%d, %+v, %v", n, d, err)
		}
		o.remove("s")
		wantLeft(t, limiter, "reply", "s", core.PerDay(50), 50)
	})
}

// Other handles do, too. Limits that do not suit a handle, or a rule, are reported, and its own hold. An
// explanation says so.
func TestOverridesOfOtherHandles(t *testing.T) {
	onBothEngines(t, func(t *testing.T, options core.Options, _ core.Source) {
		var log logtest.Log
		options.Logger = log.Logger()
		limiter, bucket, entries := newLimiter(t, options), core.PerHour(1).Bucket(1), core.PerHour(1).Log()
		pacer, records := limiter.MustPacer("pacer", bucket), limiter.MustLog("log", entries)
		slots := limiter.MustSlots("slots", 1)
		for name, handle := range map[string]struct {
			own, other core.Limit
			call       func() (core.Decision, error)
		}{
			"pacer": {bucket, core.PerMinute(2).Bucket(2), func() (core.Decision, error) { return pacer.TryAcquire(background, "s", 1, 0) }},
			"log":   {entries, core.PerDay(2).Log(), func() (core.Decision, error) { return records.Allow(background, "s", "note") }},
			"slots": {core.InFlight(1), core.Limit{Max: 2, Window: time.Hour, Algorithm: core.Concurrency}, func() (d core.Decision, err error) { _, d, err = slots.Hold(background, "s"); return d, err }},
		} {
			want := func(when string, each ...bool) {
				t.Helper()
				for i, allowed := range each {
					if d, err := handle.call(); err != nil || d.Allowed != allowed {
						t.Errorf("%s, %s, call %d: %+v, %v", name, when, i, d, err)
					}
				}
				report, err := operate.New(limiter).Inspect(background, "s")
				i := slices.IndexFunc(report.Rules, func(r operate.ExplainedRule) bool { return r.Name == name })
				if err != nil || i < 0 || report.Rules[i].Reason != core.LimitExceeded || (len(report.Rules[i].Errors) > 0) != (when == "misfit") {
					t.Errorf("%s, %s: %v, %v", name, when, report, err)
				}
			}
			o := operator{t, limiter, name, handle.own, nil}
			for _, misfit := range [][]core.Limit{{core.PerHour(9).Fixed()}, {handle.own, handle.other}} {
				o.set("s", operate.Override{Limits: misfit})
				_, _ = handle.call()
				want("misfit", false)
			}
			o.set("s", operate.Override{Limits: []core.Limit{handle.other}})
			want("other", true, true, false)
			o.lift("s")
			if d, err := handle.call(); err != nil || !d.Allowed {
				t.Errorf("%s, lifted: %+v, %v", name, d, err)
			}
		}
		if log.Count("level=WARN", "do not suit", "rule=slots") == 0 {
			t.Error(log.String())
		}
		setOverride(t, limiter, "log", "s", operate.Override{Limits: []core.Limit{core.PerDay(2).Log()}})
		if kept, err := records.Records(background, "s"); len(kept) != 2 || err != nil {
			t.Errorf("%v, %v", kept, err)
		}
		setOverride(t, limiter, "slots", "a", operate.Override{Limits: []core.Limit{{Max: 1, Window: time.Hour, Algorithm: core.Concurrency}}})
		for range 3 { // what is given back is what was taken
			release, d, err := slots.Hold(background, "a")
			if err != nil || !d.Allowed {
				t.Errorf("%+v, %v", d, err)
			}
			release()
		}
	})
}

// A rule whose calls are settled, one in a handler, and one with a lease can have overrides, too.
func TestOverridesOfOtherRules(t *testing.T) {
	onBothEngines(t, func(t *testing.T, options core.Options, _ core.Source) {
		limiter, slots := newLimiter(t, options), core.Limit{Max: 1, Window: time.Hour, Algorithm: core.Concurrency}
		setOverride(t, limiter, "settled", me, operate.Override{Limits: []core.Limit{core.PerHour(1).Log()}})
		setOverride(t, limiter, "inside", me, operate.Override{Limits: []core.Limit{slots}})
		setOverride(t, limiter, "leased", me, operate.Override{Limits: []core.Limit{slots, core.PerHour(2).Log()}})
		wantServed(t, newGuard(t, limiter, estimating("settled", core.PerHour(10), 4)), newView("GET", "/"), ok, 200, 200, 429)
		check := limiter.MustCheck(named("inside", core.PerHour(3)))
		for i, want := range []int{200, 200, 200, 429} {
			if got := status(check.Allow(newView("GET", "/"), me)); got != want {
				t.Errorf("call %d: %d, want %d", i, got, want)
			}
		}
		leased := named("leased", core.PerHour(100))
		leased.Lease = 50
		guard := newGuard(t, limiter, leased)
		wantServed(t, guard, newView("GET", "/"), ok, 200, 200, 429)
		if _, err := guard.Reset(background, me); err != nil {
			t.Error(err)
		}
		wantServed(t, guard, newView("GET", "/"), ok, 200, 200, 429)
		soft := change(named("soft", core.PerHour(5)), func(r *core.Rule) { r.Mode = core.Soft })
		setOverride(t, limiter, "soft", me, operate.Override{Limits: []core.Limit{core.PerHour(5), core.PerDay(1)}})
		wantServed(t, newGuard(t, limiter, soft), newView("GET", "/"), ok, 200, 200, 200)
		for _, d := range peekAll(t, limiter, "soft", core.PerHour(5), core.PerDay(1)) {
			if used := d.Limit.Max - d.Remaining; used != 1 {
				t.Errorf("%d used of %v: a call that one limit refuses is charged to none", used, d.Limit)
			}
		}
	})
}

func peekAll(t *testing.T, limiter *core.Limiter, name string, limit core.Limit, also ...core.Limit) []core.Decision {
	d, err := limiter.MustCounter(name, limit, also...).Peek(background, me)
	if err != nil || len(d.All) != 1+len(also) {
		t.Fatalf("%+v, %v", d, err)
	}
	return d.All
}

// A plan that LimitFor computes replaces the limit, whatever it is, and an override replaces both.
func TestComputedPlansAndOverrides(t *testing.T) {
	limiter := newLimiter(t, core.Options{Identify: whoSays})
	limits := map[string]core.Limit{"more": core.PerHour(3), "day": core.PerDay(4), "free": core.Unlimited}
	rule := byUser("api")
	rule.LimitFor = func(r core.Request) (core.Limit, error) {
		user, err := r.User()
		return limits[user], err
	}
	guard := newGuard(t, limiter, rule)
	wantServed(t, guard, by("more"), ok, 200, 200, 200, 429)
	wantServed(t, guard, by("day"), ok, 200, 200, 200, 200, 429)
	setOverride(t, limiter, "api", "user:free", operate.Override{Limits: []core.Limit{core.PerMinute(1)}})
	wantServed(t, guard, by("free"), ok, 200, 429)
}

// Without the right to read marks, the log says once that this is off, and calls do not ask for them. An
// act holds in its process.
func TestMarksWithoutARight(t *testing.T) {
	server := redistest.Start(t)
	var log logtest.Log
	limiter := newLimiter(t, core.Options{Timeout: patient, Logger: log.Logger(), Redis: server.UserWith(t, "~*", "+@all", "-hget", "-hset", "-xrange", "-xrevrange")})
	guard := newGuard(t, limiter, named("n", core.PerHour(50)))
	for range 3 {
		_ = core.ReadMarks(limiter)
	}
	if log.Count("level=WARN", "bans, blocks and overrides are not read", failure.RightsPage) != 1 {
		t.Error(log.String())
	}
	wantStatus(t, guard, newView("GET", "/"), 200)
	if stats := server.Client(t).Info(background, "commandstats").Val(); strings.Contains(stats, "cmdstat_hmget:") {
		t.Error("a call asked for marks")
	}
	if _, err := operate.New(limiter).Ban(background, "n", me, time.Hour); !errors.Is(err, core.ErrStore) {
		t.Error(err)
	}
	wantStatus(t, guard, newView("GET", "/"), 429)
}

func TestBanText(t *testing.T) {
	for ban, want := range map[core.Ban]string{
		{}:                         "nobody",
		{After: 3, For: time.Hour}: "after 3 windows, for 1h",
		{After: 1, For: 90 * time.Second, Max: 24 * time.Hour}: "after 1 window, for 1m30s, up to 24h",
	} {
		if got := ban.String(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

var closed = core.Rule{Name: "closed", Seconds: 3600, OnStoreError: core.FailClosed}

func TestAStoreThatFailsIsLoggedOnce(t *testing.T) {
	var log logtest.Log
	options := deadRedis(t)
	options.Logger = log.Logger()
	guard := newGuard(t, newLimiter(t, options), closed)
	for range 3 {
		wantStatus(t, guard, newView("GET", "/"), 503)
	}
	if log.Count("level=WARN", "rule=closed", "policy=fail_closed", "error=") != 1 || log.Count("the store does not answer") != 1 {
		t.Errorf("want one line with rule, policy and cause, got: %s", log.String())
	}
}

// A context that ends while the store is asked is an end of the caller's context, too.
func TestDirectCallsWhoseCallerLeaves(t *testing.T) {
	limiter := newLimiter(t, core.Options{})
	core.UseAnswers(limiter, algorithm.Verdict{Ended: context.Canceled})
	if d, err := limiter.MustCounter("n", core.PerHour(5)).Allow(background, "s"); !errors.Is(err, context.Canceled) || errors.Is(err, core.ErrStore) || d.Allowed {
		t.Errorf("%+v, %v", d, err)
	}
}

// subjectOn returns a subject whose counters lie on a server.
func subjectOn(t *testing.T, server *redistest.Server, limiter *core.Limiter, prefix string) (subject string) {
	t.Helper()
	client := server.Client(t)
	for i := range 1000 {
		subject = fmt.Sprint(prefix, i)
		charge(t, limiter, "where", subject, core.PerHour(5), 1)
		if client.Exists(background, core.CounterKey("accesslimit", subject, "where", core.PerHour(5))).Val() == 1 {
			return subject
		}
	}
	t.Fatal("no subject lies on the server")
	return ""
}
