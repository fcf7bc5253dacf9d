package console

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/operate"
)

// now is what the first page shows.
type now struct {
	Time    time.Time `json:"time"`
	Seconds float64   `json:"seconds"` // the time that the rates are about
	All     figure    `json:"all"`
	Rules   []figure  `json:"rules"` // the busiest ones, at most maxFigures
	More    int       `json:"more_rules,omitempty"`
	// Costs and Outgoing are of at most maxFigures rules each.
	Costs    []costs    `json:"costs,omitempty"`
	Outgoing []outgoing `json:"outgoing,omitempty"`
	Health   health     `json:"health"`
	Sets     []ruleSet  `json:"rule_sets"`
	Chart    *chart     `json:"-"`
}

// figure is what is counted of a rule, or of all calls.
type figure struct {
	Rule      string  `json:"rule,omitempty"`
	Allowed   float64 `json:"allowed_per_second"`
	Refused   float64 `json:"refused_per_second"`
	Near      float64 `json:"near_limit_per_second"`
	Uncounted float64 `json:"uncounted_per_second"`
	Total     counts  `json:"total"` // since the process started
}

func figureOf(rule string, now, then counts, passed time.Duration) figure {
	return figure{
		Rule:      show(rule),
		Allowed:   perSecond(now.Allowed, then.Allowed, passed),
		Refused:   perSecond(now.Refused, then.Refused, passed),
		Near:      perSecond(now.Near, then.Near, passed),
		Uncounted: perSecond(now.Uncounted, then.Uncounted, passed),
		Total:     now,
	}
}

// health is the state of counting: where, and whether it works.
type health struct {
	Redis     bool           `json:"in_redis"` // counts are in Redis, and not in this process
	Problem   string         `json:"problem,omitempty"`
	Took      string         `json:"took,omitempty"` // the time for a reply
	Servers   []server       `json:"servers,omitempty"`
	Errors    []failures     `json:"errors,omitempty"`
	Losses    uint64         `json:"losses"`         // that this process has noticed
	Lost      []operate.Loss `json:"lost,omitempty"` // in the last day, as any process noticed
	Slow      string         `json:"slow,omitempty"` // the longest wait of 99 % of the calls in the last minute
	Outage    *policies      `json:"if_redis_failed,omitempty"`
	Keys      int            `json:"keys"`
	Evictions uint64         `json:"evictions"`
}

// server is a core.ShardStats, with the names of the API.
type server struct {
	Addr    string `json:"address"`
	Breaker string `json:"breaker"`
	Opened  uint64 `json:"opened"`
}

// failures is an entry of core.Stats.StoreErrors.
type failures struct {
	Class core.StoreErrorClass `json:"class"`
	Count uint64               `json:"count"`
}

// ruleSet is the state of a set of rules.
type ruleSet struct {
	Names     []string  `json:"rules"`
	Version   string    `json:"version"`
	Since     time.Time `json:"since"`
	Age       string    `json:"age"`
	Fallback  bool      `json:"fallback,omitempty"`
	Problem   string    `json:"problem,omitempty"`
	LastError string    `json:"last_error,omitempty"`
	ErrorAt   time.Time `json:"last_error_at,omitzero"`
}

func (h *Handler) loadNow(_ *query) (any, error) { return h.now(), nil }

func (h *Handler) now() *now {
	stats, at := h.limiter.Stats(), time.Now()
	fresh, then := sampleOf(stats, at), h.figures.minute()
	passed := max(at.Sub(then.at), samplePause) // in less time, a few calls would look like many
	n := &now{
		Time: at, Seconds: passed.Seconds(), All: figureOf("", fresh.all, then.all, passed), Rules: []figure{},
		Costs: costsOf(stats), Outgoing: outgoingOf(stats), Health: h.health(stats, fresh.waits, then.waits), Sets: ruleSets(stats, at), Chart: drawChart(h.figures.history()),
	}
	for rule, counts := range fresh.rules {
		n.Rules = append(n.Rules, figureOf(rule, counts, then.rules[rule], passed))
	}
	slices.SortFunc(n.Rules, func(a, b figure) int {
		return cmp.Or(cmp.Compare(b.Refused, a.Refused), cmp.Compare(b.Allowed, a.Allowed), strings.Compare(a.Rule, b.Rule))
	})
	if n.More = max(0, len(n.Rules)-maxFigures); n.More > 0 {
		n.Rules = n.Rules[:maxFigures]
	}
	return n
}

// maxFigures bounds the rules of an event, because a limiter counts up to 5,000 names.
const maxFigures = 200

func (h *Handler) health(stats core.Stats, now, then core.Histogram) health {
	answer := h.probed.get(h.ask)
	of := health{
		Redis: answer.redis, Problem: uncounted(answer.err), Losses: stats.Losses,
		Slow: quantile(since(now, then), 0.99), Outage: answer.outage, Keys: stats.Keys, Evictions: stats.Evictions,
	}
	for _, l := range answer.lost {
		of.Lost = append(of.Lost, operate.Loss{Time: l.Time, Server: l.Server, Lost: readable(l.Lost), How: readable(l.How)})
	}
	for _, s := range stats.Shards {
		of.Servers = append(of.Servers, server(s))
	}
	for _, class := range slices.Sorted(maps.Keys(stats.StoreErrors)) {
		of.Errors = append(of.Errors, failures{class, stats.StoreErrors[class]})
	}
	if answer.redis && answer.err == nil {
		of.Took = span(answer.took)
	}
	return of
}

func ruleSets(stats core.Stats, at time.Time) (sets []ruleSet) {
	for _, s := range stats.RuleSets {
		sets = append(sets, ruleSet{
			Names: s.Names, Version: readable(s.Version), Since: s.Since, Age: span(at.Sub(s.Since).Truncate(time.Second)),
			Fallback: s.Fallback, Problem: s.Problem, LastError: readable(s.LastError), ErrorAt: s.LastErrorAt,
		})
	}
	return sets
}

// probe holds whether the store counts.
type probe struct {
	redis bool // whether there is Redis
	took  time.Duration
	err   error
	lost  []operate.Loss
	// outage is what the rules would do if it failed, or nil without Redis.
	outage *policies
}

// probed holds an answer until the next event of a stream, so that many readers ask the store no
// more often than one.
type probed struct {
	mu   sync.Mutex
	at   time.Time
	last probe
}

func (p *probed) get(ask func() probe) probe {
	p.mu.Lock()
	defer p.mu.Unlock()
	if time.Since(p.at) >= samplePause/2 {
		p.last = ask()
		p.at = time.Now()
	}
	return p.last
}

// ask asks the store to count, and then for its losses. Each takes at most the limiter's Timeout.
func (h *Handler) ask() probe {
	began := time.Now()
	err := h.limiter.Ping(context.Background())
	answer := probe{redis: h.inRedis, took: time.Since(began), err: err}
	if answer.redis {
		p := policiesOf(h.attached())
		answer.outage = &p
		if answer.err == nil {
			answer.lost, _ = h.operator.Losses(context.Background()) // its failure says nothing of counting
		}
	}
	return answer
}

// since returns the histogram of the observations made after then.
func since(now, then core.Histogram) core.Histogram {
	if len(then.Counts) != len(now.Counts) {
		return now
	}
	of := core.Histogram{Bounds: now.Bounds, Count: now.Count - then.Count}
	for i, n := range now.Counts {
		of.Counts = append(of.Counts, n-then.Counts[i])
	}
	return of
}

// quantile returns an upper bound of the durations of a share of the observations, or "" if there
// are none.
func quantile(of core.Histogram, share float64) string {
	if of.Count == 0 {
		return ""
	}
	seen := uint64(0)
	for i, bound := range of.Bounds {
		if seen += of.Counts[i]; float64(seen) >= share*float64(of.Count) {
			return span(time.Duration(bound * float64(time.Second)))
		}
	}
	return "over " + span(time.Duration(of.Bounds[len(of.Bounds)-1]*float64(time.Second)))
}
