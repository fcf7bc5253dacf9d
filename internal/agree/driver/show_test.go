package driver

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/operate"
)

// micros writes a duration in microseconds. Shorter times have no effect on anybody.
func micros(d time.Duration) string { return fmt.Sprint(d.Microseconds(), "µs") }

// since writes a time as microseconds since the history began.
func since(at time.Time) string {
	if at.IsZero() {
		return "never"
	}
	return "+" + micros(at.Sub(beginning))
}

// showError names the kind of an error. The text is for people and may be reworded.
func showError(err error) string {
	var rule *core.RuleError
	var store *core.StoreError
	switch {
	case err == nil:
		return "ok"
	case errors.As(err, &store):
		return "StoreError " + string(store.Class)
	case errors.As(err, &rule):
		return fmt.Sprintf("RuleError %s %s", rule.Field, rule.Code)
	}
	for name, known := range map[string]error{
		"ErrStore": core.ErrStore, "ErrCostExceedsLimit": core.ErrCostExceedsLimit, "ErrDebtExceeded": core.ErrDebtExceeded,
		"ErrBillUnknown": core.ErrBillUnknown, "ErrBillSettled": core.ErrBillSettled,
		"Canceled": context.Canceled, "DeadlineExceeded": context.DeadlineExceeded,
	} {
		if errors.Is(err, known) {
			return name
		}
	}
	return err.Error()
}

func show(d core.Decision) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %t %q %q %v left %d reset %s retry %s", d.Reason, d.Allowed, d.Rule, d.Key, d.Limit, d.Remaining, micros(d.ResetAfter), micros(d.RetryAfter))
	if d.Wait > 0 {
		fmt.Fprintf(&b, " wait %s", micros(d.Wait))
	}
	fmt.Fprintf(&b, " from %s", d.Source)
	for _, one := range d.All {
		fmt.Fprintf(&b, " [%s]", show(one))
	}
	return b.String()
}

// showHeaders writes all headers of a reply, by their names, and the lines of each in their order.
func showHeaders(h http.Header) string {
	var names, all []string
	for name := range h {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		all = append(all, fmt.Sprintf("%s: %s", name, strings.Join(h[name], " | ")))
	}
	return strings.Join(all, " ; ")
}

func showOverride(o operate.Override) string {
	return fmt.Sprintf("%q %s unlimited %t blocked %t until %s since %s by %q note %q",
		o.Subject, showMax(o), o.Unlimited, o.Blocked, since(o.Until), since(o.Since), o.Author, o.Note)
}

func showBan(b operate.BanEntry) string {
	return fmt.Sprintf("%s %q until %s %s bans %d by %q note %q", b.Rule, b.Subject, since(b.Until), b.Cause, b.Bans, b.Author, b.Note)
}

// showExplanation writes what a report says, but not in which words. The routes of a rule come in any
// order. Without the unused, it leaves out those of which nothing is used.
func showExplanation(x operate.Explanation, withoutUnused bool) string {
	var rules []string
	for _, r := range x.Rules {
		if r.Applies && !(withoutUnused && isUnused(r)) {
			rules = append(rules, showExplained(r))
		}
	}
	slices.Sort(rules)
	return fmt.Sprintf("%s by %q retry %s %s", x.Reason, x.Rule, micros(x.RetryAfter), strings.Join(rules, " "))
}

func isUnused(r operate.ExplainedRule) bool {
	for _, l := range r.Limits {
		if l.Used > 0 {
			return false
		}
	}
	return r.Override == nil && r.BannedUntil.IsZero() && r.Bans == 0 && r.Strikes == 0 && len(r.Errors) == 0
}

func showExplained(r operate.ExplainedRule) string {
	var b strings.Builder
	fmt.Fprintf(&b, "{%s %q plan %q cost %d %s retry %s refuses %t", r.Name, r.Subject, r.Plan, r.Cost, r.Reason, micros(r.RetryAfter), r.Refuses)
	for _, l := range r.Limits {
		fmt.Fprintf(&b, " [%v %s until %s", l.Limit, l.Source, since(l.Until))
		if l.Known {
			fmt.Fprintf(&b, " used %d left %d debt %d retry %s reset %s", l.Used, l.Remaining, l.Debt, micros(l.RetryAfter), micros(l.ResetAfter))
		}
		b.WriteString("]")
	}
	if r.Override != nil {
		fmt.Fprintf(&b, " override %s", showOverride(*r.Override))
	}
	fmt.Fprintf(&b, " banned until %s bans %d strikes %d errors %d}", since(r.BannedUntil), r.Bans, r.Strikes, len(r.Errors))
	return b.String()
}

// showStats writes the counts that say what happened to calls. Those of round trips and of memory are
// the library's own business.
func showStats(s core.Stats) string {
	var b strings.Builder
	fmt.Fprintf(&b, "refunds lost %d debt exceeded %d", s.RefundsLost, s.DebtExceeded)
	for _, d := range s.Decisions {
		fmt.Fprintf(&b, " [%s %s %s %d bound %d near %d]", d.Rule, d.Reason, d.Source, d.Count, d.Bound, d.Near)
	}
	for _, c := range s.Costs {
		fmt.Fprintf(&b, " %+v", c)
	}
	for _, set := range s.RuleSets {
		fmt.Fprintf(&b, " [%v %q %s]", set.Names, set.Version, set.Problem)
	}
	for _, class := range slices.Sorted(maps.Keys(s.StoreErrors)) {
		fmt.Fprintf(&b, " %s %d", class, s.StoreErrors[class])
	}
	return b.String()
}
