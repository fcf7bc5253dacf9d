package console

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/operate"
)

// rulesPage is what the page about the rules in force shows.
type rulesPage struct {
	Sets      []ruleSet     `json:"rule_sets"`
	Rules     []ruleInForce `json:"rules"`
	NotListed int           `json:"not_listed,omitempty"`
	Outage    *policies     `json:"if_redis_failed,omitempty"` // nil without Redis
}

// ruleInForce is a rule with all the places where it is attached.
type ruleInForce struct {
	Names   []string  `json:"names"`
	Limits  []string  `json:"limits"`
	Plans   []string  `json:"plans,omitempty"`
	Places  []string  `json:"places"` // at most maxPlaces
	More    int       `json:"more_places,omitempty"`
	Version string    `json:"version,omitempty"`
	Calls   string    `json:"calls,omitempty"`     // the calls that it applies to; "" for all
	Counts  string    `json:"counts_by,omitempty"` // "" for a function of the service
	Traits  []string  `json:"traits,omitempty"`
	Outage  string    `json:"if_redis_failed"` // what the rule would do then
	Mode    core.Mode `json:"mode,omitempty"`
	Total   counts    `json:"total"` // since the process started
	// DryRun is the same for a rule in DryRun.
	DryRun *dryRunCounts `json:"dry_run,omitempty"`
}

// dryRunCounts are the numbers of calls that a rule in DryRun decided, would have refused, and would have
// refused though a rule in force refused them already, and of those that it did not decide.
type dryRunCounts struct {
	Decided        uint64 `json:"decided"`
	WouldRefuse    uint64 `json:"would_refuse"`
	RefusedAlready uint64 `json:"refused_already"`
	Dropped        uint64 `json:"dropped"`
}

// add adds the counts of a name.
func (c *dryRunCounts) add(stats *core.Stats, name string) {
	c.Decided += stats.DryRuns[name].Count
	c.Dropped += stats.DryRunsDropped[name]
	for _, of := range stats.Decisions {
		if of.Rule == name && of.Reason == core.DryRunExceeded {
			c.WouldRefuse += of.Count
			c.RefusedAlready += of.Refused
		}
	}
}

// maxPlaces bounds the places that are shown for a rule.
const maxPlaces = 5

func (h *Handler) loadRules(_ *query) (any, error) {
	stats := h.limiter.Stats()
	attached, notListed, err := h.operator.Rules()
	if err != nil {
		return nil, err
	}
	shown := &rulesPage{
		Sets: ruleSets(stats, time.Now()), Rules: []ruleInForce{}, NotListed: notListed, Outage: h.probed.get(h.ask).outage,
	}
	totals, known := sampleOf(stats, time.Time{}).rules, make(map[string]int)
	for _, of := range attached {
		rule := inForce(of, totals)
		if rule.Mode == core.DryRun {
			rule.DryRun = new(dryRunCounts)
			for _, name := range of.Names {
				rule.DryRun.add(&stats, name)
			}
		}
		key := fmt.Sprint(rule.Names, rule.Limits, rule.Plans, rule.Version, rule.Calls, rule.Traits, rule.Outage)
		at, ok := known[key]
		if !ok || len(rule.Names) == 0 {
			at = len(shown.Rules)
			known[key], shown.Rules = at, append(shown.Rules, rule)
		}
		shown.Rules[at].addPlace(readable(of.Place))
	}
	return shown, nil
}

func (r *ruleInForce) addPlace(place string) {
	switch {
	case place == "" || slices.Contains(r.Places, place):
	case len(r.Places) < maxPlaces:
		r.Places = append(r.Places, place)
	default:
		r.More++
	}
}

func inForce(of operate.AttachedRule, totals map[string]counts) ruleInForce {
	r := &of.Rule
	shown := ruleInForce{
		Names: []string{}, Limits: []string{r.Limit.String()}, Places: []string{}, Version: readable(of.Version), Mode: r.Mode,
		Calls: callsOf(r), Counts: readable(of.CountsBy), Traits: traits(of), Outage: withoutRedis(r),
	}
	for _, limit := range r.Also {
		shown.Limits = append(shown.Limits, limit.String())
	}
	for _, plan := range slices.Sorted(maps.Keys(r.Plans)) {
		shown.Plans = append(shown.Plans, readable(plan)+": "+r.Plans[plan].String())
	}
	for _, name := range of.Names {
		shown.Names = append(shown.Names, show(name))
		total := totals[name]
		shown.Total.Allowed += total.Allowed
		shown.Total.Refused += total.Refused
		shown.Total.Near += total.Near
		shown.Total.Uncounted += total.Uncounted
		shown.Total.WouldRefuse += total.WouldRefuse
	}
	return shown
}

// callsOf returns the calls that a rule applies to, or "" for all.
func callsOf(r *core.Rule) string {
	text := strings.Join(append(slices.Clone(r.Methods), r.Paths...), " ")
	if len(r.Except) > 0 {
		text = strings.TrimSpace(text + " except " + strings.Join(r.Except, " "))
	}
	return readable(text)
}

// traits returns what a rule does besides counting, in words.
func traits(of operate.AttachedRule) (traits []string) {
	if of.Outgoing {
		traits = append(traits, "for calls that go out")
	}
	if of.InHandler {
		traits = append(traits, "checked in a handler")
	}
	if of.Rule.Key != nil {
		traits = append(traits, keyInWords(of.CountsBy))
	}
	for _, trait := range of.Traits {
		traits = append(traits, readable(trait))
	}
	return traits
}

// modeWords returns a mode as a person reads it.
func modeWords(mode core.Mode) string { return strings.ReplaceAll(mode.String(), "_", " ") }

// keyInWords returns what a rule counts by, in words.
func keyInWords(key string) string {
	switch key {
	case "":
		return "counts by a function of the service"
	case "global":
		return "counts all callers together"
	default:
		return "counts by " + readable(key)
	}
}
