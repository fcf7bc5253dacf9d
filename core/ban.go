package core

import (
	"context"
	"net/netip"
	"strings"
	"time"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
	"github.com/accesslimit/accesslimit/core/internal/audit"
	"github.com/accesslimit/accesslimit/core/internal/banlist"
	"github.com/accesslimit/accesslimit/core/internal/rediskey"
)

// Ban refuses a subject altogether for a while. A subject that is refused in After consecutive
// windows of the rule is refused for the time For, the next time for twice as long, and so on up to
// Max. The ban is forgotten when Max has passed without another refusal. It holds for the rule's
// Name and the subject under every plan, including Unlimited. Each call then looks at one more key.
// The zero value bans nobody.
type Ban struct {
	// After is the number of consecutive windows in which a subject must be refused: 1 to 1000. A
	// window counts once, however many calls are refused in it.
	After int
	// For is the duration of the first ban: 1 ms to 366 days.
	For time.Duration
	// Max is the longest duration of a ban: at least For, which is the default, and at most 366
	// days.
	Max time.Duration
	// ByHand bans only the subjects that [Limiter.Ban] names. The other fields must be unset.
	ByHand bool
}

const (
	maxBanAfter = 1000
	maxBan      = algorithm.MaxWindow * time.Microsecond
)

// check returns what is wrong with the ban, or nil.
func (b Ban) check() *RuleError {
	wrong := func(field string, value any, why string) *RuleError {
		return &RuleError{Field: "Ban." + field, Value: value, Why: why}
	}
	switch {
	case b == Ban{}, b == Ban{ByHand: true}:
		return nil
	case b.ByHand:
		return wrong("ByHand", true, "goes without the other fields")
	case b.After < 1 || b.After > maxBanAfter:
		return wrong("After", b.After, "must be 1 to 1000 windows; or set ByHand alone")
	case b.For < time.Millisecond || b.For > maxBan:
		return wrong("For", b.For, "must be 1 ms to 366 days: a ban has an end")
	case b.Max != 0 && (b.Max < b.For || b.Max > maxBan):
		return wrong("Max", b.Max, "must be For to 366 days, or unset")
	}
	return nil
}

// compile converts the ban of a rule with this window into the integers that the engines use.
func (b Ban) compile(window time.Duration) algorithm.Limit {
	longest := max(b.For, b.Max)
	return algorithm.Banned(int64(b.After), b.For.Microseconds(), longest.Microseconds(), window.Microseconds())
}

// Ban bans a subject from every rule of this name that has Ban set, for a span of 1 ms to 366 days
// from now. It reports whether that changed anything. Nothing changes if the present ban lasts
// longer.
//
// A ban must be arranged beforehand: if this Limiter has rules of the name, and none of them has
// Ban set, the error is a *[RuleError]. Handles do not look at bans. A bare address as the subject
// is a *[RuleError]: use [IPSubject]. Other errors are those of [Counter]. See [WithActor] and
// [Limiter.Bans].
func (l *Limiter) Ban(ctx context.Context, name, subject string, span time.Duration) (changed bool, err error) {
	began := time.Now()
	if err := l.checkOperated(name, subject); err != nil {
		return false, err
	}
	switch {
	case span < time.Millisecond || span > maxBan:
		return false, &RuleError{Rule: name, Field: "span", Value: span, Why: "must be 1 ms to 366 days: a ban has an end"}
	case l.registry.names.ignoresBans(name):
		return false, &RuleError{Rule: name, Field: "Ban", Value: Ban{}, Why: "is not set, so the rule would not see the ban: set Ban{ByHand: true}, or in a file ban: {by_hand: true}"}
	case ctx.Err() != nil:
		return false, ctx.Err()
	}
	ends, changed, err := l.store.Ban(ctx, l.banKey(name, subject), span.Microseconds())
	perhaps := mayHaveActed(err)
	if perhaps {
		ends = began.Add(span).UnixMicro()
	}
	if err == nil || perhaps {
		listed := l.listByHand(ctx, banlist.Sighting{Rule: name, Subject: subject, Ends: ends}, changed || perhaps)
		defer l.await(ctx, began, listed)
	}
	l.operated(ctx, act{
		began: began, what: audit.Ban, rule: name, subject: subject, after: "banned for " + span.String(),
	}, changed, err)
	return changed, l.storeError(name, err)
}

// Unban ends the ban of a subject, forgets its earlier ones, and reports whether there were any.
// Errors are those of [Limiter.Ban]. If Redis does not answer, the error says who still refuses the
// subject.
func (l *Limiter) Unban(ctx context.Context, name, subject string) (changed bool, err error) {
	began := time.Now()
	if err := l.checkOperated(name, subject); err != nil {
		return false, err
	}
	key := l.banKey(name, subject)
	changed, err = l.reset(ctx, audit.Unban, name, subject, key)
	if err == nil && l.local != nil {
		l.local.Bans.Lift(key)
	}
	if err == nil || mayHaveActed(err) {
		name, subject := strings.Clone(name), strings.Clone(subject)
		l.await(ctx, began, l.changeBanList(ctx, func(ctx context.Context) error { return l.bans.list.Remove(ctx, name, subject) }))
	}
	return changed, l.stillHolds(err, "the ban", subject, key)
}

// checkOperated checks the name and the subject that an operator passes. A bare address is likely
// to be a mistake: without ip: it is not the subject by which rules count that address.
func (l *Limiter) checkOperated(name, subject string) error {
	switch {
	case !l.made():
		return errNoLimiter
	case name == "":
		return &RuleError{Field: "name", Value: name, Why: "must say what is limited"}
	}
	return checkSubject(name, subject)
}

func checkSubject(name, subject string) error {
	if subject == "" {
		return noSubject(name)
	}
	if _, err := netip.ParseAddr(subject); err == nil {
		return &RuleError{
			Rule: name, Field: "subject", Value: subject,
			Why: "is a bare address, but rules by IP count by another subject: use core.IPSubject(addr), or limiter.IPSubject(addr) with Options.ClientIP.IPv6Prefix",
		}
	}
	return nil
}

func (l *Limiter) banKey(name, subject string) []byte {
	return rediskey.Append(nil, l.keyHead, subject, rediskey.BanTail(name, false))
}
