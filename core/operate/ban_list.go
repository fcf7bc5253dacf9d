package operate

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/internal/banlist"
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
	// was refused, such as "refused in 3 windows in a row", or "after refusals" if this Limiter has
	// no such rule.
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

// maxBanPage is the largest number of bans that one call of Bans looks at.
const maxBanPage = 1_000

// Bans returns a page of the bans in force of a rule, in the order of the bytes of their subjects.
// It looks at n listed bans, 1 to 1000, and leaves out those that have ended. For the first page,
// after is "". For each further page, it is the next of the previous page. next is "" on the last
// page. A page may have fewer than n bans, or none, though others follow.
//
// A ban by [Operator.Ban] is listed at once. Any other is listed within a second or so, by a
// process that reads it in a reply of Redis, which happens when the subject calls. So the list may
// miss a ban whose subject has not called since a process crashed, or since Redis lost the list.
// Subjects longer than 255 bytes are not listed, nor are bans of rules in DryRun. Of each rule,
// 100,000 bans are listed, those that end last, and 10,000 pauses. Without Redis, all rules
// together can have 100,000 bans and 50,000 pauses.
//
// The rule need not be attached to this Limiter. The error is a *[core.RuleError] if an argument is
// wrong. Others are those of [core.Counter].
func (o *Operator) Bans(ctx context.Context, rule, after string, n int) (page []BanEntry, next string, err error) {
	if err := o.checkBans(ctx, rule, n); err != nil {
		return nil, "", err
	}
	if page, next, err = o.bansAndPauses(ctx, rule, after, n); err != nil {
		return nil, "", o.failedOptional(rule, err, o.parts.Log.BansOff)
	}
	return page, next, nil
}

// bansAndPauses returns a page of the bans of calls that come in by a rule, and of the pauses of
// those that go out.
func (o *Operator) bansAndPauses(ctx context.Context, rule, after string, n int) (page []BanEntry, next string, err error) {
	incoming, outgoing := o.bannable(rule)
	if incoming {
		bans, more, err := o.parts.Bans.Page(ctx, rule, after, n)
		if err != nil {
			return nil, "", err
		}
		for _, e := range bans {
			page = append(page, o.banEntry(rule, e))
		}
		next = more
	}
	if !outgoing {
		return page, next, nil
	}
	pauses, more, err := o.parts.Pauses.Page(ctx, rule, after, n)
	if err != nil {
		return nil, "", err
	}
	for _, e := range pauses {
		page = append(page, pauseEntry(rule, e))
	}
	if next == "" || more != "" && more < next {
		next = more
	}
	if incoming {
		page, next = mergeBans(page, next, n)
	}
	return page, next, nil
}

// mergeBans sorts the bans of two pages, and cuts off those behind the subject next, unless it is
// "", and beyond n. It returns where the next page begins.
func mergeBans(page []BanEntry, next string, n int) ([]BanEntry, string) {
	slices.SortStableFunc(page, func(a, b BanEntry) int { return strings.Compare(a.Subject, b.Subject) })
	page = slices.CompactFunc(page, func(a, b BanEntry) bool { return a.Subject == b.Subject })
	if next != "" {
		page = slices.DeleteFunc(page, func(e BanEntry) bool { return e.Subject > next })
	}
	if len(page) > n {
		return page[:n], page[n-1].Subject
	}
	return page, next
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
// ban is in force. BanOf also finds bans that are missing from the list. Without Redis, these have
// no author and no note. Errors are those of [Operator.Ban].
func (o *Operator) BanOf(ctx context.Context, rule, subject string) (ban BanEntry, ok bool, err error) {
	if err := o.check(ctx, rule, subject); err != nil {
		return BanEntry{}, false, err
	}
	incoming, outgoing := o.bannable(rule)
	if incoming {
		found, ok, err := o.parts.Bans.Of(ctx, rule, subject)
		if err != nil || ok {
			return o.banEntry(rule, found), ok, o.front.Failed(rule, err)
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

func (o *Operator) banEntry(rule string, e banlist.Entry) BanEntry {
	return BanEntry{
		Rule: rule, Subject: e.Subject, Until: time.UnixMicro(e.Ends).UTC(), Cause: o.cause(rule, &e), Bans: int(e.Bans), Author: e.Author, Note: e.Note,
	}
}

func pauseEntry(rule string, e pauses.Entry) BanEntry {
	entry := BanEntry{Rule: rule, Subject: e.Key, Until: time.UnixMicro(e.Ends).UTC(), Cause: pausedByServer, Bans: int(e.Refusals)}
	if author, note, byHand := e.By(); byHand {
		entry.Cause, entry.Author, entry.Note = "by hand", author, note
	}
	return entry
}

// pausedByServer is the Cause of a pause that a server asked for.
const pausedByServer = "paused by the server"

// cause returns BanEntry.Cause.
func (o *Operator) cause(rule string, e *banlist.Entry) string {
	known, _, after := o.front.Bans(rule)
	switch {
	case e.Noted, e.ByHand:
		return "by hand"
	case !known:
		return "after refusals"
	default:
		return refusedIn(after)
	}
}

// refusedIn returns the cause of a ban after a number of windows, which is 0 if it is not known.
func refusedIn(windows int) string {
	switch windows {
	case 0:
		return "refused in several windows in a row"
	case 1:
		return "refused in 1 window"
	default:
		return fmt.Sprintf("refused in %d windows in a row", windows)
	}
}
