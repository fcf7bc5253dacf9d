package operate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/internal/actor"
	"github.com/accesslimit/accesslimit/core/internal/algorithm"
	"github.com/accesslimit/accesslimit/core/internal/audit"
	"github.com/accesslimit/accesslimit/core/internal/banlist"
	"github.com/accesslimit/accesslimit/core/internal/failure"
	"github.com/accesslimit/accesslimit/core/internal/rediskey"
)

// Ban bans a subject from every rule of this name that has Ban set, for a span of 1 ms to 366 days
// from now. It reports whether that changed anything. Nothing changes if the current ban lasts
// longer. The calls that go out by a rule of this name pause for as long: see package outgoing.
//
// A ban must be arranged beforehand: if this Limiter has rules of the name, and none of them has
// Ban set, or all of them are in DryRun, the error is a *[core.RuleError]. Handles do not look at
// bans. A bare address as the subject is a *[core.RuleError]: use [core.Limiter.IPSubject]. Other
// errors are those of [core.Counter]. See [WithActor] and [Operator.Bans].
func (o *Operator) Ban(ctx context.Context, name, subject string, span time.Duration) (changed bool, err error) {
	began := time.Now()
	if err := o.checkBan(ctx, name, subject, span); err != nil {
		return false, err
	}
	incoming, outgoing := o.bannable(name)
	if incoming {
		changed, err = o.banIncoming(ctx, began, name, subject, span)
	}
	if outgoing && err == nil {
		var longer bool
		longer, err = o.pause(ctx, began, name, subject, span)
		changed = changed || longer
	}
	o.parts.Audits.Acted(ctx, audit.Act{
		Began: began, What: audit.Ban, Rule: name, Subject: subject, After: "banned for " + span.String(),
	}, changed, err)
	return changed, o.front.Failed(name, err)
}

// bannable reports whether bans of a rule are of calls that come in, and whether they are pauses of
// calls that go out. Of a rule that this Limiter does not have, they may be either.
func (o *Operator) bannable(name string) (incoming, outgoing bool) {
	known, banning, _ := o.front.Bans(name)
	pauses := o.front.Pauses(name)
	return banning || !pauses, pauses || !known
}

// banIncoming bans a subject from calls that come in.
func (o *Operator) banIncoming(ctx context.Context, began time.Time, name, subject string, span time.Duration) (changed bool, err error) {
	ends, changed, err := o.parts.Store.Ban(ctx, o.banKey(name, subject), span.Microseconds())
	perhaps := failure.MayHaveActed(err)
	if perhaps {
		ends = began.Add(span).UnixMicro()
	}
	if err == nil || perhaps {
		listed := o.parts.Bans.Imposed(ctx, banlist.Sighting{Rule: name, Subject: subject, Ends: ends}, changed || perhaps)
		o.parts.Tasks().Await(ctx, began, listed)
	}
	return changed, err
}

// pause stops the calls of a key that go out.
func (o *Operator) pause(ctx context.Context, began time.Time, name, key string, span time.Duration) (longer bool, err error) {
	by, _ := actor.Of(ctx)
	p := algorithm.Pause{Span: span.Microseconds(), By: algorithm.PauseBy(by.Author, by.Note)}
	stored := o.parts.Pauses.Stored(name, key)
	paused, err := o.parts.Store.Pause(ctx, stored, &p)
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

// checkBan returns what is wrong with a ban, or nil.
func (o *Operator) checkBan(ctx context.Context, name, subject string, span time.Duration) error {
	if err := o.check(ctx, name, subject); err != nil {
		return err
	}
	if span < time.Millisecond || span > longestBan {
		return &core.RuleError{Rule: name, Field: "span", Value: span, Why: "must be 1 ms to 366 days: a ban has an end"}
	}
	known, banning, _ := o.front.Bans(name)
	switch {
	case known && !banning && !o.front.Pauses(name):
		return &core.RuleError{Rule: name, Field: "Ban", Value: core.Ban{}, Why: "is not set, so the rule would not see the ban: set Ban{ByHand: true}, or in a file ban: {by_hand: true}"}
	case !known && o.inDryRun(name):
		return &core.RuleError{Rule: name, Field: "Mode", Value: core.DryRun, Why: "must be enforce, because a rule in DryRun obeys no ban of an operator"}
	}
	return nil
}

// inDryRun reports whether attached rules have this name and all of them are in DryRun.
func (o *Operator) inDryRun(name string) (all bool) {
	attached, _ := o.front.Attached()
	for i := range attached {
		if !slices.Contains(attached[i].Names, name) {
			continue
		}
		if all = attached[i].Rule.Mode == core.DryRun; !all {
			return false
		}
	}
	return all
}

// Unban ends the ban of a subject, forgets its earlier ones, and reports whether there were any.
// Errors are those of [Operator.Ban]. If Redis does not answer, the error says which processes
// still refuse the subject.
func (o *Operator) Unban(ctx context.Context, name, subject string) (changed bool, err error) {
	began := time.Now()
	if err := o.check(ctx, name, subject); err != nil {
		return false, err
	}
	ban, pause := o.banKey(name, subject), o.parts.Pauses.Stored(name, subject)
	changed, err = o.parts.Reset(ctx, audit.Act{What: audit.Unban, Rule: name, Subject: subject}, o.front.Failed, ban, pause)
	if err == nil {
		o.parts.Known.Lift(ban)
		o.parts.Pauses.Lift(pause)
	}
	if err == nil || failure.MayHaveActed(err) {
		bans, pauses := o.parts.Bans.Lifted(ctx, name, subject), o.parts.Pauses.Lifted(ctx, name, subject)
		o.parts.Tasks().Await(ctx, began, bans)
		o.parts.Tasks().Await(ctx, began, pauses)
	}
	return changed, o.stillHolds(err, "the ban", subject, ban, pause)
}

func (o *Operator) banKey(name, subject string) []byte {
	return rediskey.Append(nil, o.parts.KeyHead, subject, rediskey.BanTail(name, false))
}

// stillHolds returns the error of an attempt to lift a ban or a block that may still be in force.
// If the store did not answer, the error says which processes still refuse the subject.
func (o *Operator) stillHolds(err error, what, subject string, keys ...[]byte) error {
	var failed *core.StoreError
	if !errors.As(err, &failed) {
		return err
	}
	who := "each process that knows it"
	if slices.ContainsFunc(keys, func(key []byte) bool { return o.parts.Known.Lasts(key)+o.parts.Pauses.Lasts(key) > 0 }) {
		who = "this process, and each other one that knows it,"
	}
	return &core.StoreError{Class: failed.Class, Err: fmt.Errorf("%w: %s may still be in force: %s refuses %s until Redis answers without it",
		failed.Err, what, who, SubjectText(subject))}
}
