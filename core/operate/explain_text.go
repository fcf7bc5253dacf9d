package operate

import (
	"cmp"
	"fmt"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/internal/quote"
	"github.com/accesslimit/accesslimit/core/internal/waits"
)

// String returns the report as text of several lines, for a terminal:
//
//	POST /reply from 203.0.113.7: refused by "reply": limit_exceeded. It passes in 42 s.
//
//	"reply" at main.go:42, called for POST /reply
//	    it applies to every call
//	    subject "ip:203.0.113.7"
//	    5/m (rule): 5 used, 0 left, passes in 42 s, all back in 42 s
//	    limit_exceeded  <- refuses the call
//
// Rules that do not apply or are Elsewhere, and for Inspect rules of which nothing is used, follow
// in one line each. Subjects are quoted, so that they cannot forge lines.
func (x Explanation) String() string {
	var text, rest strings.Builder
	x.writeHead(&text)
	for i := range x.Rules {
		r := &x.Rules[i]
		switch {
		case r.isIdle(x.Subject != ""):
			fmt.Fprintf(&rest, "\n%s: nothing used", r.title())
		case !r.Applies:
			fmt.Fprintf(&rest, "\n%s does not apply: %s", r.title(), r.Because)
		case r.Elsewhere:
			fmt.Fprintf(&rest, "\n%s, but not for this route: %s", r.title(), r.verdict(x.Time))
		default:
			text.WriteString("\n\n")
			r.write(&text, x.Time)
		}
	}
	if rest.Len() > 0 {
		text.WriteString("\n" + rest.String())
	}
	if x.NotListed > 0 {
		fmt.Fprintf(&text, "\n\n%d more are not listed", x.NotListed)
	}
	text.WriteByte('\n')
	return text.String()
}

// writeHead writes what the report is about, and the outcome.
func (x *Explanation) writeHead(w *strings.Builder) {
	if x.Subject != "" {
		fmt.Fprintf(w, "%q at %s", x.Subject, x.Time.Format(time.RFC3339))
		return
	}
	w.WriteString(quote.Unprintable(strings.TrimSpace(x.Method + " " + x.Path)))
	if x.ClientIP != "" {
		w.WriteString(" from " + quote.Unprintable(x.ClientIP))
	}
	if x.User != "" {
		fmt.Fprintf(w, " by user %q", x.User)
	}
	switch {
	case x.Reason == "":
		w.WriteString(": not known")
	case x.Rule == "":
		fmt.Fprintf(w, ": %s", x.Reason)
	case refuses(x.Reason):
		fmt.Fprintf(w, ": refused by %q: %s", x.Rule, x.Reason)
	default:
		fmt.Fprintf(w, ": allowed by %q: %s", x.Rule, x.Reason)
	}
	if other := x.refusingElsewhere(); x.Reason == core.Allowed && other != "" {
		fmt.Fprintf(w, ", unless %q is attached to this route", other)
	}
	if x.RetryAfter > 0 {
		fmt.Fprintf(w, ". It passes in %s.", waitText(x.RetryAfter))
	}
}

// refusingElsewhere returns the name of a rule that would refuse the call if it was attached to its
// route, or "".
func (x *Explanation) refusingElsewhere() string {
	for i := range x.Rules {
		if r := &x.Rules[i]; r.Elsewhere && refuses(r.Reason) {
			return r.Name
		}
	}
	return ""
}

// isIdle reports whether an Inspect has nothing to say about the rule.
func (r *ExplainedRule) isIdle(inspect bool) bool {
	if !inspect || r.Override != nil || !r.BannedUntil.IsZero() || r.Bans+r.Strikes+len(r.Errors) > 0 {
		return false
	}
	for i := range r.Limits {
		if l := &r.Limits[i]; l.Used > 0 || !l.Known && l.asksStore() {
			return false
		}
	}
	return true
}

// asksStore reports whether the limit has a counter.
func (l *ExplainedLimit) asksStore() bool {
	return l.Limit != core.Unlimited && l.Limit != core.Limit{}
}

// title returns the rule's name and place.
func (r *ExplainedRule) title() string {
	text := strconv.Quote(r.Name)
	if r.Place != "" {
		text += " at " + path.Base(r.Place)
	}
	if r.Version != "" {
		text += fmt.Sprintf(" in version %q", r.Version)
	}
	if len(r.Routes) > 0 {
		text += ", called for " + quote.Unprintable(strings.Join(r.Routes, ", "))
	}
	return text
}

// write writes everything about a rule that applies.
func (r *ExplainedRule) write(w *strings.Builder, now time.Time) {
	line := func(format string, args ...any) { fmt.Fprintf(w, "\n    "+format, args...) }
	w.WriteString(r.title())
	if r.Because != "" {
		line("%s", r.Because)
	}
	if len(r.Traits) > 0 {
		line("the rule: %s", quote.Unprintable(strings.Join(r.Traits, ", ")))
	}
	switch {
	case r.Subject != "" && r.Plan != "":
		line("subject %q, plan %q", r.Subject, r.Plan)
	case r.Subject != "":
		line("subject %q", r.Subject)
	}
	if r.Cost != 1 && len(r.Limits) > 0 {
		line("the call takes %d permits", r.Cost)
	}
	for i := range r.Limits {
		line("%s", r.Limits[i].text())
	}
	if r.Override != nil {
		line("override%s: %s", asText(r.OverriddenAs), r.Override.report())
	}
	if !r.BannedUntil.IsZero() && r.Reason != core.Banned { // otherwise the verdict says so
		line("%s", r.ban(now))
	}
	switch {
	case r.Bans+r.Strikes == 0:
	case r.Outgoing:
		line("pauses in a row after refusals: %d", r.Bans)
	default:
		line("strikes: %d, bans so far: %d", r.Strikes, r.Bans)
	}
	for _, text := range r.Errors {
		line("error: %q", text)
	}
	line("%s", r.verdict(now))
}

func (r *ExplainedRule) ban(now time.Time) string {
	how := "banned"
	if r.Outgoing {
		how = "paused"
	}
	return fmt.Sprintf("%s%s for %s, until %s", how, asText(r.BannedAs), waitText(r.BannedUntil.Sub(now)), r.BannedUntil.Format(time.RFC3339))
}

// asText returns words about the network that is marked in place of a subject, or "".
func asText(network string) string {
	if network == "" {
		return ""
	}
	return " as " + SubjectText(network)
}

// verdict returns the reason in words, or why it is not known.
func (r *ExplainedRule) verdict(now time.Time) string {
	text := string(r.Reason)
	if r.Reason == core.Banned && !r.BannedUntil.IsZero() {
		text = r.ban(now)
	}
	switch {
	case r.Reason == "" && r.Elsewhere:
		_, why, _ := strings.Cut(r.Because, "; ")
		text = cmp.Or(why, "not known")
	case r.Reason == "":
		text = "not known"
	case r.Refuses:
		text += "  <- refuses the call"
	}
	return text
}

// text returns the limit with what is used of it.
func (l *ExplainedLimit) text() string {
	switch {
	case l.Limit == core.Limit{}:
		return "any other limit (" + l.from() + ")"
	case l.Limit == core.Unlimited:
		return "unlimited (" + l.from() + ")"
	}
	text := fmt.Sprintf("%v (%s): ", l.Limit, l.from())
	if !l.Known {
		return text + "not known"
	}
	text += fmt.Sprintf("%d used, %d left", l.Used, l.Remaining)
	if l.Debt > 0 {
		text += fmt.Sprintf(", %d in debt", l.Debt)
	}
	if l.RetryAfter > 0 {
		text += ", passes in " + waitText(l.RetryAfter)
	}
	if l.ResetAfter > 0 {
		text += ", all back in " + waitText(l.ResetAfter)
	}
	return text
}

// from returns where the limit comes from.
func (l *ExplainedLimit) from() string {
	if l.Until.IsZero() {
		return quote.Unprintable(l.Source)
	}
	return l.Source + " until " + l.Until.Format(time.RFC3339Nano)
}

// report returns the override with its author and note.
func (o *Override) report() string {
	text := o.String()
	if o.Author != "" {
		text += fmt.Sprintf(", by %q", o.Author)
	}
	if o.Note != "" {
		text += fmt.Sprintf(", %q", o.Note)
	}
	return text
}

func waitText(wait time.Duration) string { return string(waits.Append(nil, wait)) }
