package driver

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/operate"
	"github.com/accesslimit/accesslimit/nethttplimit"
)

// process is a process of the service.
type process struct {
	limiter  *core.Limiter
	operator *operate.Operator
	guards   []*core.Guard
	set      *core.RuleSet
	check    *core.Check
	routes   http.Handler
	own      []http.Handler
	counters []core.Counter
	pacer    core.Pacer
	log      core.Log
	slots    core.Slots
}

// start makes a process. It writes down which rules are refused.
func (h *history) start(d design) (p *process) {
	limiter, err := core.New(d.options)
	if err != nil {
		panic(err)
	}
	p = &process{limiter: limiter, operator: operate.New(limiter)}
	for _, rules := range d.rules {
		p.guards = append(p.guards, h.guard(limiter, rules))
	}
	rules := h.valid(limiter, d.versions[0])
	if p.set, err = limiter.RuleSet(rules...); err != nil {
		panic(err)
	}
	if h.attached(rules); !canObey(&d.versions[1][0]) {
		delete(h.obeying, "set")
	}
	if !sameWindows(d.versions) {
		h.own["set"] = core.Limit{}
	}
	set, err := p.set.Guard("set")
	if err != nil {
		panic(err)
	}
	p.guards = append(p.guards, set)
	rules = h.valid(limiter, d.inside)
	if p.check, err = limiter.Check(rules...); err == nil {
		h.attached(rules)
	} else {
		h.notef("no check: %s", showError(err))
		p.check = limiter.MustCheck(core.Rule{Name: "check", Limit: core.PerSecond(3)})
	}
	p.serve(h)
	for i, c := range d.counters {
		counter, err := limiter.Counter(fmt.Sprint("c", i), c.limits[0], c.limits[1:]...)
		if err != nil { // two limits have one counter
			counter = limiter.MustCounter(fmt.Sprint("c", i), c.limits[0])
		}
		p.counters = append(p.counters, counter.WithBills(c.terms).WithStorePolicy(c.policy))
	}
	if h.client == nil { // a counter that lasts: so sweeps come at the same times in both versions
		_, _ = limiter.MustCounter("lasting", core.Per(5, 366*24*time.Hour)).Allow(context.Background(), "subject")
	}
	p.pacer, p.log, p.slots = limiter.MustPacer("pacer", d.bucket), limiter.MustLog("log", d.log), limiter.MustSlots("slots", d.slots)
	return p
}

// serve attaches the guards to routes.
func (p *process) serve(h *history) {
	mux, handler := http.NewServeMux(), http.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { h.handle(p, w, r) }))
	behind := func(guard *core.Guard, next http.Handler) http.Handler {
		return nethttplimit.With(guard)(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			awaitDryRuns(p.limiter)
			next.ServeHTTP(w, r)
		}))
	}
	mux.Handle("/a/{id}", behind(p.guards[0], handler))
	mux.Handle("/b/{id}", behind(p.guards[0], behind(p.guards[1], handler)))
	mux.Handle("/c/{id}", behind(p.guards[2], handler))
	mux.Handle("/d/{id}", behind(p.guards[3], handler))
	p.routes = mux
	for _, guard := range p.guards {
		p.own = append(p.own, nethttplimit.OwnLimits(guard))
	}
}

// guard returns a guard of the rules that go together.
func (h *history) guard(limiter *core.Limiter, rules []core.Rule) *core.Guard {
	rules = h.valid(limiter, rules)
	for len(rules) > 0 {
		guard, err := limiter.Guard(rules...)
		if err == nil {
			h.attached(rules)
			return guard
		}
		h.notef("no guard of %d rules: %s", len(rules), showError(err))
		rules = rules[:len(rules)-1]
	}
	return limiter.MustGuard(core.Rule{Name: "plain", Limit: core.PerSecond(5)})
}

// valid returns the rules with what is wrong taken away from them.
func (h *history) valid(limiter *core.Limiter, rules []core.Rule) (valid []core.Rule) {
	for _, r := range rules {
		for _, less := range simplify {
			if !h.isWrong(&r, limiter) {
				break
			}
			less(&r)
			obeyMarks(&r)
		}
		valid = append(valid, r)
	}
	return valid
}

// attached notes on whose subjects operators can act, and what bans.
func (h *history) attached(rules []core.Rule) {
	for _, r := range rules {
		if h.own[r.Name] = ownLimit(r); slices.Contains(h.settled, r.Name) {
			h.own[r.Name] = core.Limit{} // in the newer version, estimates and debts are bounded by the override
		}
		if canObey(&r) {
			h.obeying[r.Name] = true
		}
		if r.Ban.After > 0 {
			h.bans[r.Name] = true
		}
	}
}

// canObey reports whether operators could act on a rule's subjects also before all rules obeyed.
func canObey(r *core.Rule) bool {
	return r.Name != "" && r.Lease == 0 && r.Mode != core.Soft && r.Limit.Algorithm != core.Concurrency && r.Plans == nil && r.LimitFor == nil
}

// ownLimit returns the limit of a rule if it is the only one that the rule can have, or the zero Limit.
func ownLimit(r core.Rule) core.Limit {
	switch {
	case !canObey(&r) || len(r.Also) > 0 || r.Limit.Algorithm == core.TokenBucket:
		return core.Limit{}
	case r.Seconds > 0:
		return core.Per(r.MaxCount, time.Duration(r.Seconds)*time.Second)
	}
	return r.Limit
}

// sameWindows reports whether all versions of a RuleSet count alike.
func sameWindows(versions [][]core.Rule) bool {
	first := versions[0][0].Limit
	return !slices.ContainsFunc(versions, func(rules []core.Rule) bool {
		limit := rules[0].Limit
		limit.Max = first.Max
		return limit != first
	})
}

func (h *history) isWrong(r *core.Rule, limiter *core.Limiter) bool {
	mistakes := r.Check(limiter)
	for _, m := range mistakes {
		h.notef("%s: %s %s", r.Name, m.Field, m.Code)
	}
	return len(mistakes) > 0
}

// simplify takes fields away from a wrong rule, until a plain one is left.
var simplify = []func(r *core.Rule){
	func(r *core.Rule) { r.Lease = 0 },
	func(r *core.Rule) { r.Note = nil },
	func(r *core.Rule) { r.Ban = core.Ban{} },
	func(r *core.Rule) { r.Warn = nil },
	func(r *core.Rule) { r.Also = nil },
	func(r *core.Rule) { r.OnStoreError = core.StorePolicy{} },
	func(r *core.Rule) {
		*r = core.Rule{Name: r.Name, Paths: r.Paths, Limit: r.Limit, Seconds: r.Seconds, MaxCount: r.MaxCount, Count: r.Count, Key: r.Key, Mode: r.Mode}
	},
	func(r *core.Rule) { *r = core.Rule{Name: r.Name, Paths: r.Paths, Limit: core.PerSecond(5), Key: r.Key} },
}

// timed returns the options of a process of this history. With so few keys, the process keeps them in one
// table: with several, the table in which a key lies, and so when a step of the clock is noticed for it, is
// up to chance.
func (h *history) timed(options core.Options) core.Options {
	options.Prefix, options.Timeout, options.MaxKeys, options.Logger = "agree", 30*time.Second, 1000, h.logger
	if h.client != nil {
		options.Redis = h.client
	}
	options.OnDecision = func(_ context.Context, e core.Event) {
		h.remember(e.Decision)
		h.laterf("event %s %s %s %s %s", show(e.Decision), e.Method, e.Route, e.Path, e.ClientIP)
	}
	options.OnThreshold = func(_ context.Context, t core.Threshold) {
		h.laterf("threshold %s %q %v %v used %d reset %s at %s", t.Rule, t.Key, t.Limit, t.Fraction, t.Used, micros(t.ResetAfter), since(t.Time))
	}
	return options
}
