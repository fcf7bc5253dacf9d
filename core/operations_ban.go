package core

import (
	"context"
	"time"

	"github.com/accesslimit/accesslimit/core/internal/audit"
	"github.com/accesslimit/accesslimit/core/internal/banlist"
	"github.com/accesslimit/accesslimit/core/internal/failure"
	"github.com/accesslimit/accesslimit/core/internal/rediskey"
)

// ban is [Limiter.Ban].
func (o *operations) ban(ctx context.Context, name, subject string, span time.Duration) (changed bool, err error) {
	began := time.Now()
	if err := o.checkBan(ctx, name, subject, span); err != nil {
		return false, err
	}
	ends, changed, err := o.store.Ban(ctx, o.banKey(name, subject), span.Microseconds())
	perhaps := failure.MayHaveActed(err)
	if perhaps {
		ends = began.Add(span).UnixMicro()
	}
	if err == nil || perhaps {
		listed := o.bans.Imposed(ctx, banlist.Sighting{Rule: name, Subject: subject, Ends: ends}, changed || perhaps)
		defer o.tasks.Await(ctx, began, listed)
	}
	o.audits.Acted(ctx, audit.Act{
		Began: began, What: audit.Ban, Rule: name, Subject: subject, After: "banned for " + span.String(),
	}, changed, err)
	return changed, o.failures.errorOf(name, err)
}

// checkBan returns what is wrong with a ban, or nil.
func (o *operations) checkBan(ctx context.Context, name, subject string, span time.Duration) error {
	if err := o.check(name, subject); err != nil {
		return err
	}
	switch {
	case span < time.Millisecond || span > maxBan:
		return &RuleError{Rule: name, Field: "span", Value: span, Why: "must be 1 ms to 366 days: a ban has an end"}
	case o.names.ignoresBans(name):
		return &RuleError{Rule: name, Field: "Ban", Value: Ban{}, Why: "is not set, so the rule would not see the ban: set Ban{ByHand: true}, or in a file ban: {by_hand: true}"}
	}
	return ctx.Err()
}

// unban is [Limiter.Unban].
func (o *operations) unban(ctx context.Context, name, subject string) (changed bool, err error) {
	began := time.Now()
	if err := o.check(name, subject); err != nil {
		return false, err
	}
	key := o.banKey(name, subject)
	changed, err = o.reset(ctx, audit.Unban, name, subject, key)
	if err == nil {
		o.known.Lift(key)
	}
	if err == nil || failure.MayHaveActed(err) {
		o.tasks.Await(ctx, began, o.bans.Lifted(ctx, name, subject))
	}
	return changed, o.stillHolds(err, "the ban", subject, key)
}

func (o *operations) banKey(name, subject string) []byte {
	return rediskey.Append(nil, o.keyHead, subject, rediskey.BanTail(name, false))
}
