package operate

import (
	"context"
	"fmt"
	"time"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/internal/banlist"
	"github.com/accesslimit/accesslimit/core/internal/quote"
)

// BanEntry is a ban in force: see [Operator.Bans].
type BanEntry struct {
	// Rule is the name of the rule, and Subject the banned subject.
	Rule    string `json:"rule"`
	Subject string `json:"subject"`
	// Until is when the ban ends, by the clock of Redis, or of this process if there is no Redis.
	Until time.Time `json:"until"`
	// Cause is "by hand" for a ban by [Operator.Ban], and "paused by the server" for a pause of calls
	// that go out (see package outgoing). Otherwise it says in how many windows the subject was
	// refused, such as "refused in 3 windows in a row". If this Limiter has no such rule, it is "after
	// refusals" or "by hand or by a server".
	Cause string `json:"cause"`
	// Bans is how often the rule has banned the subject, including this time, since its earlier
	// bans were last forgotten: see [core.Ban]. Bans by hand do not count.
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
// 100,000 bans are listed, those that end last. Without Redis, all rules together can have as many.
//
// The rule need not be attached to this Limiter. The error is a *[core.RuleError] if an argument is
// wrong. Others are those of [core.Counter].
func (o *Operator) Bans(ctx context.Context, rule, after string, n int) (page []BanEntry, next string, err error) {
	if err := o.checkBans(ctx, rule, n); err != nil {
		return nil, "", err
	}
	entries, next, err := o.parts.Bans.Page(ctx, rule, after, n)
	if err != nil {
		return nil, "", o.failedOptional(rule, err, o.parts.Log.BansOff)
	}
	for _, e := range entries {
		page = append(page, o.banEntry(rule, e))
	}
	return page, next, nil
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
	found, ok, err := o.parts.Bans.Of(ctx, rule, subject)
	if err != nil || !ok {
		return BanEntry{}, false, o.front.Failed(rule, err)
	}
	return o.banEntry(rule, found), true, nil
}

func (o *Operator) banEntry(rule string, e banlist.Entry) BanEntry {
	return BanEntry{
		Rule: rule, Subject: e.Subject, Until: time.UnixMicro(e.Ends).UTC(), Cause: o.cause(rule, &e), Bans: int(e.Bans), Author: e.Author, Note: e.Note,
	}
}

// cause returns BanEntry.Cause.
func (o *Operator) cause(rule string, e *banlist.Entry) string {
	pauses, _ := o.front.Pauses(rule)
	known, _, after := o.front.Bans(rule)
	switch {
	case e.Noted:
		return "by hand"
	case pauses:
		return "paused by the server"
	case !known && e.ByHand:
		return "by hand or by a server"
	case !known:
		return "after refusals"
	case e.ByHand:
		return "by hand"
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
