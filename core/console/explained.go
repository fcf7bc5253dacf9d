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

// explanation is an Explanation with what the reader may not see removed. Shown and Idle are not in
// its JSON.
type explanation struct {
	operate.Explanation
	Shown []*explainedRule // those that say something of the subject or the call
	Idle  []*explainedRule // the others
}

// explainedRule is what is known of a rule about a subject or a call.
type explainedRule struct {
	*operate.ExplainedRule
	Link bool     // the subject can be opened
	Left string   // how long the ban lasts
	Ban  *banLine // who imposed it and why, if that is known
}

// explainedLimit is a limit with what is used of it.
type explainedLimit struct{ *operate.ExplainedLimit }

func (h *Handler) explained(who Identity, x operate.Explanation) *explanation {
	ofSubject := x.Subject != ""
	e := &explanation{Explanation: x}
	e.Method, e.Path, e.Route = readable(x.Method), readable(x.Path), readable(x.Route)
	e.User, e.Subject, e.Rule = h.user(who, x.User), h.subject(who, x.Subject), shownName(x.Rule)
	for i := range e.Rules {
		r := &e.Rules[i]
		idle := isIdle(r, ofSubject)
		if rule := h.explainedRule(who, r, x.Time); idle {
			e.Idle = append(e.Idle, rule)
		} else {
			e.Shown = append(e.Shown, rule)
		}
	}
	return e
}

// explainedRule returns a rule with what the reader may not see removed.
func (h *Handler) explainedRule(who Identity, r *operate.ExplainedRule, now time.Time) *explainedRule {
	about := func(text string) string { return h.about(who, r.Subject, text) }
	for i, text := range r.Errors {
		if h.redacts(who) { // the text may contain a subject
			text = "an error, which operators can read"
		}
		r.Errors[i] = about(text)
	}
	if o := r.Override; o != nil {
		r.OverriddenAs = h.subject(who, r.OverriddenAs)
		o.Author, o.Note, o.Subject = shownName(o.Author), about(o.Note), h.subject(who, o.Subject)
	}
	for i := range r.Routes {
		r.Routes[i] = readable(r.Routes[i])
	}
	for i := range r.Traits {
		r.Traits[i] = readable(r.Traits[i])
	}
	for i := range r.Limits {
		r.Limits[i].Source = readable(r.Limits[i].Source)
	}
	r.Name, r.Place, r.Version, r.Plan, r.Because = show(r.Name), readable(r.Place), readable(r.Version), readable(r.Plan), about(r.Because)
	r.BannedAs = h.subject(who, r.BannedAs)
	e := &explainedRule{ExplainedRule: r, Link: r.Subject != "" && !h.redacts(who)}
	if r.Subject = h.subject(who, r.Subject); e.Banned() {
		e.Left = waitOf(r.BannedUntil.Sub(now))
	}
	return e
}

// Banned reports whether the subject is banned.
func (r *explainedRule) Banned() bool { return !r.BannedUntil.IsZero() }

// BanEnforced reports whether the subject itself has a ban that refuses its calls. One of its network
// ends on the network's page, and a rule in DryRun refuses nobody.
func (r *explainedRule) BanEnforced() bool {
	return r.Banned() && r.BannedAs == "" && r.Mode != core.DryRun
}

// Wait returns how long the rule would refuse, in words.
func (r *explainedRule) Wait() string { return waitOf(r.RetryAfter) }

// OverrideText returns the override in words.
func (r *explainedRule) OverrideText() string {
	o := *r.Override
	o.Until = time.Time{}
	return untilText(o.String(), r.Override.Until)
}

// Limits returns the limits for the page.
func (r *explainedRule) Limits() (limits []explainedLimit) {
	for i := range r.ExplainedRule.Limits {
		limits = append(limits, explainedLimit{&r.ExplainedRule.Limits[i]})
	}
	return limits
}

// Text returns the limit in its text form.
func (l explainedLimit) Text() string {
	if (l.Limit == core.Limit{}) {
		return "any other"
	}
	return l.Limit.String()
}

// From returns where the limit comes from, in words.
func (l explainedLimit) From() string { return untilText(l.Source, l.Until) }

// Reset returns the time until nothing is in use, in words.
func (l explainedLimit) Reset() string { return waitOf(l.ResetAfter) }

// Max returns the number of permits, for a meter.
func (l explainedLimit) Max() int { return l.Used - l.Debt + l.Remaining }

// High returns the number from which the limit is nearly used up.
func (l explainedLimit) High() float64 { return 0.8 * float64(l.Max()) }

// Unlimited reports whether the limit counts nothing.
func (l explainedLimit) Unlimited() bool { return l.Limit == core.Unlimited }

// untilText appends an end to a text, unless it is zero.
func untilText(text string, until time.Time) string {
	if until.IsZero() {
		return text
	}
	return text + " until " + moment(until)
}

// addBans adds who imposed the bans of a subject, and why, for the first few bans. It asks about
// them at the same time, so that a slow Redis delays the page by at most one Timeout. It returns
// the bans by the names of their rules.
func (h *Handler) addBans(ctx context.Context, who Identity, x operate.Explanation, e *explanation) (bans map[string]*banLine) {
	const most = 8 // each takes a trip or two
	var asked sync.WaitGroup
	left := most
	for _, rule := range e.Shown {
		if !rule.BanEnforced() || left == 0 {
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
	asked.Wait()
	bans = make(map[string]*banLine)
	for _, rule := range e.Shown {
		if rule.Ban != nil {
			bans[rule.Name] = rule.Ban
		}
	}
	return bans
}

// isIdle reports whether there is nothing to say about a rule, because it does not apply to the
// call or has counted nothing for the subject.
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

// waitOf returns a wait in words, or "" for none. It rounds up, so that nobody retries too early.
func waitOf(wait time.Duration) string {
	if wait <= 0 {
		return ""
	}
	return span((wait + time.Second - 1).Truncate(time.Second))
}

// Words returns the reason as a person reads it.
func (r *explainedRule) Words() string { return reasonWords(r.Reason) }

// Words returns the reason as a person reads it.
func (e *explanation) Words() string { return reasonWords(e.Reason) }

// Wait returns how long the call would be refused, in words.
func (e *explanation) Wait() string { return waitOf(e.RetryAfter) }

// Passes reports whether the call would pass.
func (e *explanation) Passes() bool {
	return e.Reason != "" && !slices.ContainsFunc(e.Rules, func(r operate.ExplainedRule) bool { return r.Refuses })
}

func reasonWords(reason core.Reason) string { return strings.ReplaceAll(string(reason), "_", " ") }
