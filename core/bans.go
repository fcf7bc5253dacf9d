package core

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/accesslimit/accesslimit/core/internal/actor"
	"github.com/accesslimit/accesslimit/core/internal/algorithm"
	"github.com/accesslimit/accesslimit/core/internal/banlist"
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
	text := fmt.Sprintf("%s  %s  until %s, %s", printableText(b.Rule), printableText(b.Subject), b.Until.Format(time.RFC3339), b.Cause)
	if b.Author != "" || b.Note != "" {
		text += fmt.Sprintf(" (%s: %s)", printableText(b.Author), printableText(b.Note))
	}
	return text
}

// maxBanPage is the largest number of bans that one call of Bans looks at.
const maxBanPage = 1_000

// Bans returns a page of the bans in force of a rule, in the order of the bytes of their subjects.
// It looks at n listed bans, 1 to 1000, and leaves out those that have ended. For the first page,
// after is "". For each further page, it is the next of the page before. next is "" on the last
// page. A page may have fewer than n bans, or none, though others follow.
//
// A ban by [Limiter.Ban] is listed at once. Any other is listed within a second or so, by a process
// that reads it in a reply of Redis, which happens when the subject calls. So the list may miss a
// ban whose subject has not called since a process crashed, or since Redis lost the list. Subjects
// longer than 255 bytes are not listed, nor are bans of rules in DryRun. Of each rule, 100,000 bans
// are listed, those that end last. Without Redis, all rules together can have as many.
//
// The rule need not be attached to this Limiter. The error is a *[RuleError] if an argument is
// wrong. Others are those of [Counter].
func (l *Limiter) Bans(ctx context.Context, rule, after string, n int) (page []BanEntry, next string, err error) {
	switch {
	case !l.made():
		return nil, "", errNoLimiter
	case rule == "":
		return nil, "", &RuleError{Field: "rule", Value: rule, Why: "must be the name of a rule"}
	case n < 1 || n > maxBanPage:
		return nil, "", &RuleError{Rule: rule, Field: "n", Value: n, Why: "must be 1 to 1000 bans"}
	case ctx.Err() != nil:
		return nil, "", ctx.Err()
	}
	entries, next, err := l.bans.page(ctx, l, rule, after, n)
	if err != nil {
		return nil, "", l.optionalError(rule, err, l.operatorLog.BansOff)
	}
	for _, e := range entries {
		page = append(page, l.banEntry(rule, e))
	}
	return page, next, nil
}

func (l *Limiter) banEntry(rule string, e banlist.Entry) BanEntry {
	entry := BanEntry{
		Rule: rule, Subject: e.Subject, Until: time.UnixMicro(e.Ends).UTC(), Cause: "by hand", Bans: int(e.Bans), Author: e.Author, Note: e.Note,
	}
	if after := l.registry.names.banAfter(rule); !e.ByHand {
		entry.Cause = refusedIn(after)
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

// bans holds the list of the bans in force, and the bans that calls of this process have met.
type bans struct {
	list banlist.List
	seen *banlist.Sightings
	optional
}

// page writes the bans that calls of this process have met into the list, and then returns a page
// of it, all within Timeout.
func (b *bans) page(ctx context.Context, l *Limiter, rule, after string, n int) (page []banlist.Entry, next string, err error) {
	do := func(ctx context.Context) (err error) {
		b.seen.Flush(ctx)
		page, next, err = b.list.Page(ctx, rule, after, n)
		return err
	}
	if l.redis == nil {
		err = do(ctx)
	} else {
		err = l.redis.Operate(ctx, do)
	}
	return page, next, err
}

// errBanListOff is the error while a right for the list of bans is missing.
var errBanListOff = errors.New("the list of bans is off")

// noteBan passes on the ban at i, so that it is listed, if the store has just reported that it is
// in force. Without Redis, only the call that begins a ban needs to do so.
func (c *call) noteBan(i int) {
	a, v, l := &c.limits[i], &c.verdicts[i], c.limiter
	if a.rule.DryRun || v.From != algorithm.FromStore || l.memory != nil && !v.Struck {
		return
	}
	l.bans.seen.See(c.counters[i].Key, a.named.name, c.subjects[a.from:a.to], v.At+v.RetryAfter)
}

// listBans lists bans that calls have met.
func (l *Limiter) listBans(ctx context.Context, met []banlist.Sighting) error {
	return l.writeBanList(ctx, func(ctx context.Context) error { return l.bans.list.Add(ctx, met) })
}

// listByHand lists a ban that an operator has imposed, in the background, and closes the channel
// afterwards. If changed is false, a longer ban was in force before, and keeps its author.
func (l *Limiter) listByHand(ctx context.Context, ban banlist.Sighting, changed bool) (listed <-chan struct{}) {
	ban.Rule, ban.Subject = strings.Clone(ban.Rule), strings.Clone(ban.Subject) // a framework may have lent them for one call
	by, _ := actor.Of(ctx)
	return l.changeBanList(ctx, func(ctx context.Context) error {
		switch {
		case len(ban.Subject) > banlist.MaxSubject:
			return nil
		case !changed:
			return l.bans.list.Add(ctx, []banlist.Sighting{ban})
		default:
			return l.bans.list.AddByHand(ctx, ban, by.Author, by.Note)
		}
	})
}

// changeBanList changes the list of bans in the background, even after the context has ended, and
// closes the channel afterwards.
func (l *Limiter) changeBanList(ctx context.Context, change func(context.Context) error) (done <-chan struct{}) {
	changed := make(chan struct{})
	l.store.InBackground(func() {
		defer close(changed)
		_ = l.writeBanList(context.WithoutCancel(ctx), change)
	})
	return changed
}

// writeBanList writes to the list of bans, unless a right is missing, and logs failures.
func (l *Limiter) writeBanList(ctx context.Context, write func(context.Context) error) error {
	if l.bans.isOff() {
		return errBanListOff
	}
	err := write(ctx)
	switch {
	case l.bans.turnOff(err):
		l.operatorLog.BansOff(err)
	case err != nil && ctx.Err() == nil:
		l.operatorLog.BansFailed(err)
	}
	return err
}
