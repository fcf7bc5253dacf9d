package core

import (
	"context"
	"fmt"
	"time"

	"github.com/accesslimit/accesslimit/core/internal/banlist"
	"github.com/accesslimit/accesslimit/core/internal/quote"
)

// BanEntry is a ban in force: see [Limiter.Bans].
type BanEntry struct {
	// Rule is the name of the rule, and Subject the banned subject.
	Rule, Subject string
	// Until is when the ban ends, by the clock of Redis, or of this process if there is no Redis.
	Until time.Time
	// Cause is "by hand" for a ban by [Limiter.Ban]. Otherwise it says in how many windows the
	// subject was refused, such as "refused in 3 windows in a row", or "refused in several windows in
	// a row" if this Limiter has no such rule.
	Cause string
	// Bans is how often the rule has banned the subject, including this time, since its earlier
	// bans were last forgotten: see [Ban]. Bans by hand do not count.
	Bans int
	// Author and Note are those of [WithActor] for a ban by hand, or empty.
	Author, Note string
}

// String returns the ban as a line for a terminal. Texts with bytes that do not print are quoted.
//
//	search  ip:203.0.113.7  until 2026-11-22T15:03:07Z, by hand (alice@ops: scraper)
func (b BanEntry) String() string {
	text := fmt.Sprintf("%s  %s  until %s, %s", quote.Unprintable(b.Rule), quote.Unprintable(b.Subject), b.Until.Format(time.RFC3339), b.Cause)
	if b.Author != "" || b.Note != "" {
		text += fmt.Sprintf(" (%s: %s)", quote.Unprintable(b.Author), quote.Unprintable(b.Note))
	}
	return text
}

// maxBanPage is the largest number of bans that one call of Bans looks at.
const maxBanPage = 1_000

// bansOf is [Limiter.Bans].
func (o *operations) bansOf(ctx context.Context, rule, after string, n int) (page []BanEntry, next string, err error) {
	switch {
	case o == nil:
		return nil, "", errNoLimiter
	case rule == "":
		return nil, "", &RuleError{Field: "rule", Value: rule, Why: "must be the name of a rule"}
	case n < 1 || n > maxBanPage:
		return nil, "", &RuleError{Rule: rule, Field: "n", Value: n, Why: "must be 1 to 1000 bans"}
	case ctx.Err() != nil:
		return nil, "", ctx.Err()
	}
	entries, next, err := o.bans.Page(ctx, rule, after, n)
	if err != nil {
		return nil, "", o.failures.errorOfOptional(rule, err, o.log.BansOff)
	}
	for _, e := range entries {
		page = append(page, o.banEntry(rule, e))
	}
	return page, next, nil
}

// banOf is [Limiter.BanOf].
func (o *operations) banOf(ctx context.Context, rule, subject string) (ban BanEntry, ok bool, err error) {
	if err := o.check(rule, subject); err != nil {
		return BanEntry{}, false, err
	}
	if err := ctx.Err(); err != nil {
		return BanEntry{}, false, err
	}
	var found banlist.Entry
	if found, ok, err = o.bans.Of(ctx, rule, subject); err != nil || !ok {
		return BanEntry{}, false, o.failures.errorOf(rule, err)
	}
	return o.banEntry(rule, found), true, nil
}

func (o *operations) banEntry(rule string, e banlist.Entry) BanEntry {
	entry := BanEntry{
		Rule: rule, Subject: e.Subject, Until: time.UnixMicro(e.Ends).UTC(), Cause: "by hand", Bans: int(e.Bans), Author: e.Author, Note: e.Note,
	}
	if !e.ByHand {
		entry.Cause = refusedIn(o.names.banAfter(rule))
	}
	return entry
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
