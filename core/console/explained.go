package console

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/internal/panics"
	"github.com/accesslimit/accesslimit/core/operate"
)

// explanation is a operate.Explanation in the words of the page.
type explanation struct {
	Time      time.Time       `json:"time,omitzero"`
	Reason    string          `json:"reason,omitempty"`
	Rule      string          `json:"rule,omitempty"`
	Wait      string          `json:"wait,omitempty"`
	User      string          `json:"user,omitempty"`
	Address   string          `json:"address,omitempty"`
	Route     string          `json:"route,omitempty"`
	Rules     []explainedRule `json:"rules"` // those that say something of the subject or the call
	Idle      []explainedRule `json:"idle"`  // the others
	NotListed int             `json:"not_listed,omitempty"`
}

// explainedRule is what is known of a rule about a subject or a call.
type explainedRule struct {
	Name      string           `json:"rule"`
	Place     string           `json:"place,omitempty"`
	Version   string           `json:"version,omitempty"`
	Routes    []string         `json:"routes,omitempty"`
	Elsewhere bool             `json:"elsewhere,omitempty"`
	InHandler bool             `json:"in_handler,omitempty"`
	Applies   bool             `json:"applies"`
	Because   string           `json:"because,omitempty"`
	Subject   string           `json:"subject,omitempty"`
	Link      bool             `json:"-"` // the subject can be opened
	Plan      string           `json:"plan,omitempty"`
	Cost      int              `json:"cost,omitempty"`
	Limits    []explainedLimit `json:"limits,omitempty"`
	Override  *override        `json:"override,omitempty"`
	Banned    bool             `json:"banned,omitempty"`
	Until     time.Time        `json:"banned_until,omitzero"`
	Left      string           `json:"ban_ends_in,omitempty"`
	Ban       *banLine         `json:"ban,omitempty"` // how it came about, if that is known
	Bans      int              `json:"bans,omitempty"`
	Strikes   int              `json:"strikes,omitempty"`
	Mode      core.Mode        `json:"mode,omitempty"`
	Reason    string           `json:"reason,omitempty"`
	Wait      string           `json:"wait,omitempty"`
	Refuses   bool             `json:"refuses,omitempty"`
	Errors    []string         `json:"errors,omitempty"`
}

// explainedLimit is a limit with what is used of it.
type explainedLimit struct {
	Limit     string `json:"limit"`
	Source    string `json:"source"`
	Known     bool   `json:"known"`
	Used      int    `json:"used"`
	Remaining int    `json:"remaining"`
	Wait      string `json:"wait,omitempty"`
	Reset     string `json:"reset,omitempty"`
}

// Max returns the number of permits, for a meter.
func (l explainedLimit) Max() int { return l.Used + l.Remaining }

// High returns the number from which the limit is nearly used up.
func (l explainedLimit) High() float64 { return 0.8 * float64(l.Max()) }

// Unlimited reports whether the limit counts nothing.
func (l explainedLimit) Unlimited() bool { return l.Limit == core.Unlimited.String() }

// override is what an operator set for a subject.
type override struct {
	Text    string    `json:"text"`
	Author  string    `json:"author"`
	Note    string    `json:"note"`
	Since   time.Time `json:"since,omitzero"`
	Ignored string    `json:"ignored,omitempty"`
}

func (h *Handler) explained(who Identity, x operate.Explanation) *explanation {
	e := &explanation{
		Time: x.Time, Reason: string(x.Reason), Wait: waitOf(x.RetryAfter), Address: x.ClientIP, Route: readable(x.Route),
		Rules: []explainedRule{}, Idle: []explainedRule{}, NotListed: x.NotListed,
	}
	if x.Rule != "" {
		e.Rule = show(x.Rule)
	}
	if x.User != "" {
		e.User = h.subject(who, x.User)
	}
	for i := range x.Rules {
		rule := h.explainedRule(who, &x.Rules[i], x.Time)
		if isIdle(&x.Rules[i], x.Subject != "") {
			e.Idle = append(e.Idle, rule)
		} else {
			e.Rules = append(e.Rules, rule)
		}
	}
	return e
}

func (h *Handler) explainedRule(who Identity, r *operate.ExplainedRule, now time.Time) explainedRule {
	about := func(text string) string { return h.about(who, r.Subject, text) }
	e := explainedRule{
		Name: show(r.Name), Place: readable(r.Place), Version: readable(r.Version), Elsewhere: r.Elsewhere, InHandler: r.InHandler,
		Applies: r.Applies, Because: about(r.Because), Plan: readable(r.Plan), Cost: r.Cost, Bans: r.Bans, Strikes: r.Strikes,
		Mode: r.Mode, Reason: string(r.Reason), Wait: waitOf(r.RetryAfter), Refuses: r.Refuses,
	}
	if r.Subject != "" {
		e.Subject, e.Link = h.subject(who, r.Subject), !h.redacts(who)
	}
	if e.Until = r.BannedUntil; !e.Until.IsZero() {
		e.Banned, e.Left = true, waitOf(e.Until.Sub(now))
	}
	if o := r.Override; o != nil {
		e.Override = &override{Text: readable(humane(o.String())), Author: shownName(o.Author), Note: about(o.Note), Since: o.Since, Ignored: readable(o.Ignored)}
	}
	for _, route := range r.Routes {
		e.Routes = append(e.Routes, readable(route))
	}
	for _, text := range r.Errors {
		if h.redacts(who) { // a function of the service may have put a subject into it
			text = "an error, which operators can read"
		}
		e.Errors = append(e.Errors, about(text))
	}
	for i := range r.Limits {
		e.Limits = append(e.Limits, explainLimit(&r.Limits[i]))
	}
	return e
}

func explainLimit(l *operate.ExplainedLimit) explainedLimit {
	e := explainedLimit{
		Limit: l.Limit.String(), Source: readable(humane(l.Source)), Known: l.Known, Used: l.Used, Remaining: l.Remaining,
		Wait: waitOf(l.RetryAfter), Reset: waitOf(l.ResetAfter),
	}
	if (l.Limit == core.Limit{}) {
		e.Limit = "any other"
	}
	return e
}

// addBans adds how the bans of a subject came about, for the first few of them. It asks about all of
// them at once, so that a slow Redis delays the page by no more than one Timeout.
func (h *Handler) addBans(ctx context.Context, who Identity, x operate.Explanation, e *explanation) {
	const most = 8 // each takes a trip or two
	var asked sync.WaitGroup
	defer asked.Wait()
	left := most
	for i := range e.Rules {
		rule := &e.Rules[i]
		if !rule.Banned || left == 0 {
			continue
		}
		left--
		asked.Go(panics.Guard(func() {
			name, _ := parse(rule.Name)
			if ban, ok, err := h.operator.BanOf(ctx, name, x.Subject); ok && err == nil {
				line := h.banLine(who, ban)
				rule.Ban = &line
			}
		}, h.panicked))
	}
}

// isIdle reports whether there is nothing to say of a rule: it does not apply to the call, or it has
// counted nothing for the subject.
func isIdle(r *operate.ExplainedRule, ofSubject bool) bool {
	if !ofSubject {
		return !r.Applies || r.Elsewhere
	}
	if r.Override != nil || !r.BannedUntil.IsZero() || r.Bans+r.Strikes+len(r.Errors) > 0 {
		return false
	}
	return isUnused(r)
}

// isUnused reports whether a rule has counted nothing.
func isUnused(r *operate.ExplainedRule) bool {
	return !slices.ContainsFunc(r.Limits, func(l operate.ExplainedLimit) bool { return l.Used > 0 })
}

// waitOf returns a wait in words, or "" for none. It is rounded up, so that nobody comes too early.
func waitOf(wait time.Duration) string {
	if wait <= 0 {
		return ""
	}
	return span((wait + time.Second - 1).Truncate(time.Second))
}

// Words returns the reason as a person reads it.
func (r explainedRule) Words() string { return reasonWords(r.Reason) }

// Words returns the reason as a person reads it.
func (e explanation) Words() string { return reasonWords(e.Reason) }

// Passes reports whether the call would pass.
func (e explanation) Passes() bool {
	var c counts
	c.add(core.Reason(e.Reason), 1, 0)
	return c.Allowed > 0
}

func reasonWords(reason string) string { return strings.ReplaceAll(reason, "_", " ") }
