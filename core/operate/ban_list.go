package operate

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/internal/marks"
	"github.com/accesslimit/accesslimit/core/internal/pauses"
	"github.com/accesslimit/accesslimit/core/internal/quote"
)

// BanEntry is a ban in force: see [Operator.Bans].
type BanEntry struct {
	// Rule is the name of the rule, and Subject the banned subject.
	Rule    string `json:"rule"`
	Subject string `json:"subject"`
	// Until is when the ban ends, by the clock of Redis, or of this process if there is no Redis.
	Until time.Time `json:"until"`
	// Cause is "by hand" for a ban by [Operator.Ban], and "paused by the server" for a pause of
	// calls that go out (see package outgoing). Otherwise it says in how many windows the subject
	// was refused, such as "refused in 3 windows in a row".
	Cause string `json:"cause"`
	// Bans is how often the rule has banned the subject, including this time, since its earlier
	// bans were last forgotten: see [core.Ban]. Bans by hand do not count. Of a pause, it is the
	// number of pauses after refusals since the server last answered a call.
	Bans int `json:"bans"`
	// Author and Note are those of [WithActor] for a ban by hand, or empty.
	Author string `json:"author,omitempty"`
	Note   string `json:"note,omitempty"`
}

// String returns the ban as a line for a terminal, with the subject's [SubjectText]. Other texts with
// bytes that do not print are quoted.
//
//	search  ip:203.0.113.7  until 2026-11-22T15:03:07Z, by hand (alice@ops: scraper)
func (b BanEntry) String() string {
	text := fmt.Sprintf("%s  %s  until %s, %s", quote.Unprintable(b.Rule), SubjectText(b.Subject), b.Until.Format(time.RFC3339), b.Cause)
	if b.Author != "" || b.Note != "" {
		text += fmt.Sprintf(" (%s: %s)", quote.Unprintable(b.Author), quote.Unprintable(b.Note))
	}
	return text
}

// maxBanPage is the largest number of bans of a page.
const maxBanPage = 1_000

// Bans returns a page of the bans in force of a rule, in the order of the bytes of their subjects, or
// of its pauses if it is for calls that go out. n is 1 to 1000. For the first page, after is "". For
// each further page, it is the next of the previous page. next is "" on the last page. A page of
// pauses may have fewer than n, or none, though others follow.
//
// Bans of rules in DryRun are not listed. Of each rule, 10,000 pauses are listed.
//
// The rule need not be attached to this Limiter. The error is a *[core.RuleError] if an argument is
// wrong. Others are those of [core.Counter].
func (o *Operator) Bans(ctx context.Context, rule, after string, n int) (page []BanEntry, next string, err error) {
	if err := o.checkBans(ctx, rule, n); err != nil {
		return nil, "", err
	}
	incoming, outgoing := o.directions(rule)
	if incoming {
		if err := o.parts.Marks.Refresh(ctx); err != nil {
			return nil, "", o.front.Failed(rule, err)
		}
		page = slices.DeleteFunc(o.bans(), func(b BanEntry) bool { return b.Rule != rule || b.Subject <= after })
	}
	if outgoing {
		pauses, more, err := o.parts.Pauses.Page(ctx, rule, after, n)
		if err != nil {
			return nil, "", o.failedOptional(rule, err, o.parts.Log.PausesOff)
		}
		for _, e := range pauses {
			page = append(page, pauseEntry(rule, e))
		}
		if next = more; next != "" {
			page = slices.DeleteFunc(page, func(b BanEntry) bool { return b.Subject > next })
		}
		page = oneEach(page)
	}
	if len(page) > n {
		page, next = page[:n], page[n-1].Subject
	}
	return page, next, nil
}

// AllBans returns a page of the bans in force of all rules, in the order of the names of the rules, and
// then of the subjects. Pauses are not among them. n is 1 to 1000. For the first page, after is "". For
// each further page, it is the next of the previous page. next is "" on the last page. Errors are those
// of [Operator.Bans].
func (o *Operator) AllBans(ctx context.Context, after string, n int) (page []BanEntry, next string, err error) {
	if err := o.checkBans(ctx, "any", n); err != nil {
		return nil, "", err
	}
	if err := o.parts.Marks.Refresh(ctx); err != nil {
		return nil, "", o.front.Failed("bans", err)
	}
	page = slices.DeleteFunc(o.bans(), func(b BanEntry) bool { return b.place() <= after })
	if len(page) > n {
		page, next = page[:n], page[n-1].place()
	}
	return page, next, nil
}

// KnownBans returns the bans and pauses that this process knows, of a rule, or of all rules if rule is
// "". They hold here while Redis does not answer, when [Operator.Bans] fails. They are in the order of
// the names of the rules, and then of the subjects. The error is a *[core.RuleError] for a Limiter that
// was never made.
func (o *Operator) KnownBans(rule string) (all []BanEntry, err error) {
	if err := o.made(); err != nil {
		return nil, err
	}
	all = o.bans()
	if o.parts.Redis != nil {
		o.parts.Pauses.Each(func(of, key string, ends int64) {
			all = append(all, BanEntry{Rule: of, Subject: key, Until: timeOf(ends), Cause: pausedByServer})
		})
		all = oneEach(all)
	}
	return slices.DeleteFunc(all, func(b BanEntry) bool { return rule != "" && b.Rule != rule }), nil
}

// place returns a text by which pages of all bans are ordered.
func (b BanEntry) place() string { return b.Rule + "\x00" + b.Subject }

// oneEach sorts bans, and of those of one subject keeps the first: an act under a rule that this Limiter
// does not have both bans and pauses.
func oneEach(all []BanEntry) []BanEntry {
	slices.SortStableFunc(all, compareBans)
	return slices.CompactFunc(all, func(a, b BanEntry) bool { return compareBans(a, b) == 0 })
}

func compareBans(a, b BanEntry) int {
	return cmp.Or(cmp.Compare(a.Rule, b.Rule), cmp.Compare(a.Subject, b.Subject))
}

// bans returns the bans that this process knows, in order.
func (o *Operator) bans() (all []BanEntry) {
	for _, m := range o.parts.Marks.All() {
		if m.Kind == marks.Banned {
			all = append(all, banEntry(m))
		}
	}
	slices.SortFunc(all, compareBans)
	return all
}

// checkBans returns what is wrong with the arguments of Bans, or nil.
func (o *Operator) checkBans(ctx context.Context, rule string, n int) error {
	if err := o.made(); err != nil {
		return err
	}
	switch {
	case rule == "":
		return &core.RuleError{Field: "rule", Value: rule, Why: "must be the name of a rule"}
	case n < 1 || n > maxBanPage:
		return &core.RuleError{Rule: rule, Field: "n", Value: n, Why: "must be 1 to 1000 bans"}
	}
	return ctx.Err()
}

// BanOf returns the ban of a subject from a rule, as [Operator.Bans] would. ok reports whether a
// ban is in force. For an address, it is that of exactly this address, and not of a network. Errors are
// those of [Operator.Ban].
func (o *Operator) BanOf(ctx context.Context, rule, subject string) (ban BanEntry, ok bool, err error) {
	if err := o.check(ctx, rule, subject); err != nil {
		return BanEntry{}, false, err
	}
	incoming, outgoing := o.directions(rule)
	if incoming {
		found, err := o.parts.Marks.Rule(rule).Of(ctx, subject)
		if err != nil {
			return BanEntry{}, false, o.front.Failed(rule, err)
		}
		if found.Ban() != nil {
			return banEntry(found.Ban()), true, nil
		}
	}
	if outgoing {
		found, ok, err := o.parts.Pauses.Of(ctx, rule, subject)
		if err != nil || ok {
			return pauseEntry(rule, found), ok, o.front.Failed(rule, err)
		}
	}
	return BanEntry{}, false, nil
}

func banEntry(m *marks.Mark) BanEntry {
	b := BanEntry{Rule: m.Rule, Subject: m.Subject, Until: timeOf(m.Until), Cause: "by hand", Bans: m.Bans, Author: m.Author, Note: m.Note}
	if m.ByRule {
		b.Cause, b.Note = m.Note, ""
	}
	return b
}

func pauseEntry(rule string, e pauses.Entry) BanEntry {
	entry := BanEntry{Rule: rule, Subject: e.Key, Until: timeOf(e.Ends), Cause: pausedByServer, Bans: int(e.Refusals)}
	if author, note, byHand := e.By(); byHand {
		entry.Cause, entry.Author, entry.Note = "by hand", author, note
	}
	return entry
}

// pausedByServer is the Cause of a pause that a server asked for.
const pausedByServer = "paused by the server"
