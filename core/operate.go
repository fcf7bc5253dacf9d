package core

import (
	"context"
	"time"

	"github.com/accesslimit/accesslimit/core/internal/audit"
)

// What operators ask and do. The parts of a Limiter that know the answers do not know the Limiter.

// operator returns what operators do with a Limiter, or nil if New did not make it.
func (l *Limiter) operator() *operations {
	f := l.front()
	if f == nil {
		return nil
	}
	return f.operations
}

// Audit returns at most n entries about what operators did, newest first: n is 1 to 1000. If before
// is not empty, it is the ID of an entry, and Audit returns older ones.
//
// The Limiter that carries out an act writes the entry, with or without [WithActor], if the act
// changed something: an override, a ban, an unban, a reset, or a change of rules. All processes
// together write a change of rules once. An act never fails because its entry cannot be written;
// the log says why. In Redis, the newest 10,000 entries are kept, or some hundred more, for all
// processes with this Prefix. Without Redis, the newest 10,000 of this process are kept.
//
// The error is a *[RuleError] if n or before is wrong. Others are those of [Counter].
func (l *Limiter) Audit(ctx context.Context, before string, n int) ([]AuditEntry, error) {
	return l.operator().audit(ctx, before, n)
}

// RecordAttempt writes into the audit that an act was tried without effect: it was forbidden, it
// failed, or it changed nothing. It is for programs through which operators act, because
// [Limiter.Audit] otherwise holds only acts that changed something. Act, Rule and Subject of the
// entry describe the act, and After gives the reason. The author and the note are those of
// [WithActor]. Other fields are ignored.
//
// It returns when the entry is written, after Timeout, or when the context ends. It never fails: if
// the entry cannot be written, the log says why. It does not write the log line that WithActor
// describes. Danger: each entry displaces the oldest one of a full audit, so bound how many of them
// strangers can cause.
func (l *Limiter) RecordAttempt(ctx context.Context, attempt AuditEntry) {
	l.mustFront().Audits.Record(ctx, time.Now(), audit.Entry{Act: attempt.Act, Rule: attempt.Rule, Subject: attempt.Subject, After: attempt.After})
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
	return l.operator().ban(ctx, name, subject, span)
}

// Unban ends the ban of a subject, forgets its earlier ones, and reports whether there were any.
// Errors are those of [Limiter.Ban]. If Redis does not answer, the error says who still refuses the
// subject.
func (l *Limiter) Unban(ctx context.Context, name, subject string) (changed bool, err error) {
	return l.operator().unban(ctx, name, subject)
}

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
	return l.operator().bansOf(ctx, rule, after, n)
}

// BanOf returns the ban of a subject from a rule, as [Limiter.Bans] would. ok reports whether a ban
// is in force. BanOf also finds bans that are missing from the list. Without Redis, these have no
// author and no note. Errors are those of [Limiter.Ban].
func (l *Limiter) BanOf(ctx context.Context, rule, subject string) (ban BanEntry, ok bool, err error) {
	return l.operator().banOf(ctx, rule, subject)
}

// Overrides returns the overrides of a name. This Limiter must have a rule of that name with
// Overrides set, which is attached, or a handle of that name made by WithOverrides. Otherwise the
// error is a *[RuleError].
func (l *Limiter) Overrides(name string) (Overrides, error) {
	return l.operator().overridesOf(name)
}

// ExplainReference reads the reference of a refusal. Any process with the same
// Options.ReferenceKeys may have made it. Case, spaces and hyphens make no difference, and the
// letters O, I and L may stand for the digits 0, 1 and 1. The error is a *[RuleError]: the text is
// not a reference, or part of it is missing or was changed, or it was made with a key that is not
// in Options.ReferenceKeys.
func (l *Limiter) ExplainReference(text string) (Reference, error) {
	f := l.front()
	if f == nil {
		return Reference{}, errNoLimiter
	}
	return f.references.open(text)
}
