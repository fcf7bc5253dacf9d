package operate

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/internal/actor"
	"github.com/accesslimit/accesslimit/core/internal/algorithm"
	"github.com/accesslimit/accesslimit/core/internal/audit"
	"github.com/accesslimit/accesslimit/core/internal/failure"
	"github.com/accesslimit/accesslimit/core/internal/limiter"
	"github.com/accesslimit/accesslimit/core/internal/marks"
	"github.com/accesslimit/accesslimit/core/internal/rediskey"
)

// Ban bans a subject from all rules and handles of this name, for a span of 1 ms to 366 days from
// now, in place of an earlier ban. It holds in this process at once, and in each other one within a
// second. The subject may be a network: see [Overrides]. The calls that go out by a rule of this name
// pause for as long instead, unless a longer pause is in force: see package outgoing. Ban reports
// whether that changed anything.
//
// A bare address as the subject is a *[core.RuleError]: use [core.Limiter.IPSubject]. Other errors are
// those of [Overrides]. See [WithActor] and [Operator.Bans].
func (o *Operator) Ban(ctx context.Context, name, subject string, span time.Duration) (changed bool, err error) {
	began := time.Now()
	if err := o.checkMarked(ctx, name, subject); err != nil {
		return false, err
	}
	if span < time.Millisecond || span > longestBan {
		return false, &core.RuleError{Rule: name, Field: "span", Value: span, Why: "must be 1 ms to 366 days: a ban has an end"}
	}
	incoming, outgoing := o.directions(name)
	if incoming {
		by, _ := actor.Of(ctx)
		m := marks.Mark{Rule: name, Subject: strings.Clone(subject), Kind: marks.Banned, Author: by.Author, Note: by.Note}
		_, err = o.mark(ctx, m, span.Microseconds())
		changed = err == nil
	}
	if outgoing && err == nil {
		var longer bool
		longer, err = o.pause(ctx, began, name, subject, span)
		changed = changed || longer
	}
	o.parts.Audits.Acted(ctx, audit.Act{
		Began: began, What: audit.Ban, Rule: name, Subject: subject, After: "banned for " + span.String(),
	}, changed, err)
	return changed, o.failedAct(name, err)
}

// directions reports whether the calls of a rule come in, and whether they go out. Of a rule that this
// Limiter does not have, they may do either.
func (o *Operator) directions(name string) (incoming, outgoing bool) {
	if o.front.Pauses(name) {
		return false, true
	}
	attached, _ := o.front.Attached()
	known := slices.ContainsFunc(attached, func(r limiter.AttachedRule[core.Rule]) bool { return slices.Contains(r.Names, name) })
	return true, !known
}

// pause stops the calls of a key that go out.
func (o *Operator) pause(ctx context.Context, began time.Time, name, key string, span time.Duration) (longer bool, err error) {
	by, _ := actor.Of(ctx)
	p := algorithm.Pause{Span: span.Microseconds(), By: algorithm.PauseBy(by.Author, by.Note)}
	stored := o.parts.Pauses.Stored(name, key)
	change := algorithm.Change{Kind: algorithm.Pauses, Key: stored, Pause: &p}
	err = o.parts.Store.Change(ctx, &change)
	paused := change.Paused
	if longer = paused.Longer; failure.MayHaveActed(err) {
		paused = o.parts.Pauses.Hold(stored, name, key, &p)
	}
	if paused.Lasts > 0 {
		o.parts.Tasks().Await(ctx, began, o.parts.Pauses.Recorded(ctx, name, key, paused))
	}
	return longer, err
}

// longestBan is the longest span of a ban.
const longestBan = algorithm.MaxWindow * time.Microsecond

// Unban ends the ban of a subject, forgets its refusals, and reports whether there were any.
// Errors are those of [Operator.Ban].
func (o *Operator) Unban(ctx context.Context, name, subject string) (changed bool, err error) {
	began := time.Now()
	if err := o.check(ctx, name, subject); err != nil {
		return false, err
	}
	incoming, outgoing := o.directions(name)
	if incoming {
		by, _ := actor.Of(ctx)
		m := marks.Mark{Rule: name, Subject: strings.Clone(subject), Kind: marks.Unbanned, Author: by.Author, Note: by.Note}
		before, failed := o.mark(ctx, m, 0)
		struck, pardoned := o.parts.Marks.Pardon(ctx, rediskey.Append(nil, o.parts.KeyHead, subject, rediskey.StrikeTail(name, false)))
		changed, err = before != nil || struck, cmp.Or(failed, pardoned)
	}
	if outgoing && err == nil {
		var paused bool
		paused, err = o.unpause(ctx, began, name, subject)
		changed = changed || paused
	}
	o.parts.Audits.Acted(ctx, audit.Act{Began: began, What: audit.Unban, Rule: name, Subject: subject}, changed, err)
	return changed, o.failedAct(name, err)
}

// unpause lets the calls of a key go out again.
func (o *Operator) unpause(ctx context.Context, began time.Time, name, key string) (changed bool, err error) {
	stored := o.parts.Pauses.Stored(name, key)
	changed, err = o.parts.Store.Reset(ctx, stored)
	if err == nil {
		o.parts.Pauses.Lift(stored)
	}
	if err == nil || failure.MayHaveActed(err) {
		o.parts.Tasks().Await(ctx, began, o.parts.Pauses.Lifted(ctx, name, key))
	}
	return changed, err
}
