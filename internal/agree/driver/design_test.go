package driver

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/accesslimit/accesslimit/core"
)

// design is what a history's service is made of. Each of its processes is made of the same design.
type design struct {
	options  core.Options
	rules    [guards][]core.Rule // of the middlewares
	inside   []core.Rule         // of the check in the handler
	versions [][]core.Rule       // of the RuleSet
	counters []counterDesign
	bucket   core.Limit // of the pacer
	log      core.Limit
	slots    int
	spans    []time.Duration // by which time passes
	settled  []string        // the names of rules whose costs are settled
	byIP     []string        // and of those that count by addresses
}

const (
	guards = 3 // around the handler of each route: the first, the first and the second, the third
	routes = 4 // these three and the RuleSet's
)

type counterDesign struct {
	limits []core.Limit
	terms  core.BillTerms
	policy core.StorePolicy
}

// designer draws a design.
type designer struct {
	*rand.Rand
	design
	rulesSoFar        int
	nameless, banning bool // there is a rule without a name, and one of them bans
}

func (g *designer) chance(p float64) bool { return g.Float64() < p }

func pick[T any](r *rand.Rand, of ...T) T { return of[r.IntN(len(of))] }

func draw(r *rand.Rand) design {
	g := &designer{Rand: r}
	g.spans = []time.Duration{pick(r, time.Millisecond, 100*time.Millisecond, time.Second), pick(r, time.Second, 1500*time.Millisecond, 7*time.Second, time.Minute)}
	g.options = core.Options{
		Headers:  pick(r, core.HeadersDraft10, core.HeadersDraft11, core.HeadersDraft7, core.HeadersXRateLimit|core.HeadersDraft7, core.HeadersXRateLimitDelta, core.NoHeaders),
		Expose:   g.chance(0.3),
		Identify: identify,
		ClientIP: core.ClientIP{TrustedProxies: []string{"192.0.2.0/24"}},
	}
	for i := range g.rules {
		for range 1 + g.IntN(3) {
			g.rules[i] = append(g.rules[i], g.rule("", true))
		}
	}
	g.inside = append(g.inside, g.rule("", false))
	g.drawVersions()
	for range 1 + g.IntN(3) {
		g.counters = append(g.counters, g.counter())
	}
	g.bucket = g.limit(core.TokenBucket)
	g.log = g.limit(core.SlidingLog)
	g.slots = 1 + g.IntN(3)
	return g.design
}

// drawVersions draws the versions of the RuleSet. They have the same names, and other numbers, modes
// or spans.
func (g *designer) drawVersions() {
	first := []core.Rule{g.rule("set", true)}
	g.versions = append(g.versions, first)
	for range 3 {
		changed := first[0]
		switch g.IntN(4) {
		case 0:
			changed.Limit = g.limit(changed.Limit.Algorithm)
		case 1:
			changed.Limit = g.limit(pick(g.Rand, core.SlidingWindow, core.FixedWindow, core.TokenBucket))
		default:
			changed.Limit.Max = 1 + g.IntN(9)
		}
		changed.Also, changed.Warn = nil, nil
		g.versions = append(g.versions, []core.Rule{changed})
	}
}

func (g *designer) max() int {
	return pick(g.Rand, 1, 2, 3, 5, 5, 10, 10, 37, 100, 1000)
}

func (g *designer) span() time.Duration {
	if g.chance(0.8) {
		return pick(g.Rand, g.spans...)
	}
	return pick(g.Rand, time.Millisecond, 32*time.Millisecond, 1000003*time.Microsecond, time.Hour)
}

// limit draws a limit by an algorithm.
func (g *designer) limit(by core.Algorithm) core.Limit {
	limit := core.Per(g.max(), g.span())
	switch by {
	case core.SlidingLog:
		return limit.Log()
	case core.FixedWindow:
		return limit.Fixed()
	case core.CalendarWindow:
		switch g.IntN(4) {
		case 0:
			return core.PerCalendarDay(g.max(), pick(g.Rand, "UTC", "Europe/Berlin"))
		case 1:
			return core.PerCalendarMonth(g.max(), "America/New_York")
		}
		return limit.Aligned()
	case core.TokenBucket:
		return limit.Bucket(pick(g.Rand, 0, 1, g.max()))
	case core.Concurrency:
		return core.InFlight(1 + g.IntN(3)).LostAfter(pick(g.Rand, time.Second, 30*time.Second))
	default:
		return limit
	}
}

func (g *designer) window() core.Limit {
	return g.limit(pick(g.Rand, core.SlidingWindow, core.SlidingWindow, core.FixedWindow, core.CalendarWindow, core.TokenBucket, core.TokenBucket))
}

func (g *designer) counted() core.Limit {
	if g.chance(0.15) {
		return g.limit(core.SlidingLog)
	}
	return g.window()
}

func (g *designer) counter() counterDesign {
	c := counterDesign{limits: []core.Limit{g.window()}}
	if g.chance(0.3) {
		c.limits = append(c.limits, g.window())
	}
	if g.chance(0.3) {
		c.terms = core.BillTerms{Expires: pick(g.Rand, time.Second, time.Minute), MaxDebt: pick(g.Rand, 0.5, 2, 10), MaxEstimate: pick(g.Rand, 0, 0.25, 1)}
	}
	if g.chance(0.3) {
		c.policy = pick(g.Rand, core.FailOpen, core.FailClosed, core.CountLocally(0.25))
	}
	return c
}

// rule draws a rule, also its name if that is "". Settings that exclude each other are left out when it is attached: see valid.
func (g *designer) rule(name string, inMiddleware bool) core.Rule {
	g.rulesSoFar++
	r := core.Rule{Name: fmt.Sprint("r", g.rulesSoFar), Limit: g.counted()}
	switch n := g.IntN(10); {
	case n < 2 && g.banning: // in the newer version, a ban holds under all rules of its name
	case n == 0:
		r.Name = ""
	case n == 1:
		r.Name, r.Paths = "", []string{pick(g.Rand, "/a/**", "/b/*")}
	case n == 2:
		r.Limit = g.limit(core.Concurrency)
	case n == 3:
		r.Limit, r.Seconds, r.MaxCount = core.Limit{}, 1+g.IntN(3), 1+g.IntN(5)
	}
	if name != "" {
		r.Name, r.Paths = name, nil
	}
	byIP := g.chance(0.15)
	r.Key = pick(g.Rand, nil, core.ByUser, core.Global, core.ByHeader("X-Tenant"), core.ByRoute, core.Join(core.ByUser, core.ByQuery("q")))
	if g.chance(0.15) {
		r.NeedLogin, r.Key = true, nil
	} else if byIP {
		if r.Key = core.ByIP; inMiddleware { // a check may be asked about another subject
			g.byIP = append(g.byIP, r.Name)
		}
	}
	for g.chance(0.25) && len(r.Also) < 2 {
		r.Also = append(r.Also, g.counted())
	}
	if g.chance(0.2) {
		r.Cost = cost
	}
	g.caller(&r)
	if g.chance(0.2) && inMiddleware {
		r.Count = func(status int) bool { return status >= 400 }
	}
	if g.chance(0.15) {
		r.Note = func(q core.Request) string { return q.Path() }
	}
	if g.chance(0.25) && (r.Name != "" || !g.nameless) {
		r.Ban = core.Ban{After: 1 + g.IntN(2), For: max(g.span(), windowOf(&r))} // in the newer version, a window leads to one ban only
		r.Ban.Max = r.Ban.For * time.Duration(1+g.IntN(4))
		g.banning = g.banning || r.Name == ""
	}
	g.nameless = g.nameless || r.Name == ""
	if g.chance(0.25) { // not DryRun, which was decided within the call once
		r.Mode = core.Soft
	}
	if g.chance(0.15) {
		r.Warn = []float64{0.5, 1}
	}
	if g.chance(0.1) {
		r.Skip = func(q core.Request) bool { return len(q.Header("X-Skip")) > 0 }
	}
	if g.chance(0.1) {
		r.Lease = 1 + g.IntN(10)
	}
	if g.chance(0.3) {
		r.OnStoreError = pick(g.Rand, core.FailClosed, core.CountLocally(0.5))
	}
	if g.chance(0.1) {
		r.Message = "Not so fast."
	}
	obeyMarks(&r)
	return r
}

// windowOf returns the longest window of a rule's own limit.
func windowOf(r *core.Rule) time.Duration {
	if r.Limit.Algorithm == core.CalendarWindow {
		return 32 * 24 * time.Hour
	}
	return max(r.Limit.Window, time.Duration(r.Seconds)*time.Second)
}

// caller draws what the rule asks of the caller, in place of its own limit and cost.
func (g *designer) caller(r *core.Rule) {
	switch g.IntN(6) {
	case 0:
		plans := map[string]core.Limit{"free": g.counted(), "pro": g.counted(), "all": core.Unlimited}
		if g.chance(0.6) { // one counter for all plans
			for _, name := range []string{"free", "pro"} {
				plans[name] = r.Limit
				if r.Limit != (core.Limit{}) {
					limit := r.Limit
					limit.Max = g.max()
					plans[name] = limit
				}
			}
		}
		addPlans(r, plans, func(q core.Request) (string, error) { return first(q, "X-Plan"), nil })
	case 1:
		limits := []core.Limit{g.counted(), {}, r.Limit}
		limitFor(r, func(q core.Request) (core.Limit, error) {
			n, _ := strconv.Atoi(first(q, "X-Limit"))
			return limits[n%len(limits)], nil
		})
	case 2:
		g.settled = append(g.settled, r.Name)
		estimate(r, cost, core.BillTerms{MaxDebt: pick(g.Rand, 0, 0.5, 5), MaxEstimate: pick(g.Rand, 0, 0.5)})
	}
}

func first(q core.Request, name string) string {
	if all := q.Header(name); len(all) > 0 {
		return all[0]
	}
	return ""
}

func cost(q core.Request) int {
	if text := first(q, "X-Cost"); text != "" {
		n, _ := strconv.Atoi(text)
		return n
	}
	return 1
}

// identify believes a header. For a user named "unsure" it fails.
func identify(q core.Request) (string, error) {
	if user := first(q, "X-User"); user != "unsure" {
		return user, nil
	}
	return "", fmt.Errorf("nobody knows")
}
