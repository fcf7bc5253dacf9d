package core

import (
	"context"
	"time"

	"github.com/accesslimit/accesslimit/core/internal/audit"
	"github.com/accesslimit/accesslimit/core/internal/failure"
)

// AuditEntry is one act of an operator: see [Limiter.Audit]. Texts that are longer than 255 bytes
// are cut.
type AuditEntry struct {
	// ID identifies the entry. Audit takes it to return older ones.
	ID string
	// Time is when the entry was written, to the millisecond, by the clock of Redis, or of this
	// process if there is no Redis.
	Time time.Time
	// Act is "override", "override removed", "ban", "unban", "reset" or "rules", for a change of
	// the rules of a [RuleSet].
	Act string
	// Rule is the name of the rule or the handle, and Subject the subject that the act was about.
	// Both are empty for a change of rules.
	Rule, Subject string
	// Author and Note are those of [WithActor], or empty. If the context has no note, that of an
	// override is its own.
	Author, Note string
	// Before and After describe what the act changed: an override, or the version of the rules. For
	// a ban, After says how long it lasts. Both are empty for other acts. If no reply came, the act
	// may or may not have been done, and After begins with "perhaps".
	Before, After string
}

// maxAuditPage is the largest number of entries that Audit returns.
const maxAuditPage = 1_000

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
	switch {
	case !l.made():
		return nil, errNoLimiter
	case n < 1 || n > maxAuditPage:
		return nil, &RuleError{Field: "n", Value: n, Why: "must be 1 to 1000 entries"}
	case before != "" && !audit.IsID(before):
		return nil, &RuleError{Field: "before", Value: before, Why: "must be the ID of an entry, or empty for the newest ones"}
	case ctx.Err() != nil:
		return nil, ctx.Err()
	}
	found, err := l.audits.trail.Read(ctx, before, n)
	if err != nil {
		return nil, l.optionalError("audit", err, l.operatorLog.AuditUnread)
	}
	entries := make([]AuditEntry, len(found))
	for i := range found {
		entries[i] = AuditEntry(found[i])
	}
	return entries, nil
}

// audits holds where a Limiter writes what operators do.
type audits struct {
	trail audit.Trail
	optional
}

// record writes an entry. It waits for the reply, so that Audit returns the entry afterwards, but
// only until the context ends or Timeout has passed since the act began.
func (l *Limiter) record(ctx context.Context, began time.Time, e audit.Entry) {
	e = e.By(ctx)
	written := make(chan struct{})
	l.writeAudit(ctx, written, func(ctx context.Context) error { return l.audits.trail.Append(ctx, e) })
	l.await(ctx, began, written)
}

// await waits for what an act does in the background, but only until the context ends or Timeout
// has passed since the act began.
func (l *Limiter) await(ctx context.Context, began time.Time, done <-chan struct{}) {
	patience := time.NewTimer(time.Until(began.Add(l.options.Timeout)))
	defer patience.Stop()
	select {
	case <-done:
	case <-ctx.Done():
	case <-patience.C:
	}
}

// rulesChanged writes that the rules have changed from one version to another, unless another
// process has written it. The version before is "" for the first one of this process. If earlier is
// not nil, rulesChanged first waits until it is closed: it belongs to the change before this one.
// It closes written when the change is written.
func (l *Limiter) rulesChanged(ctx context.Context, before, now string, earlier <-chan struct{}, written chan<- struct{}) {
	e := audit.Entry{Act: audit.Rules, Before: before, After: now}.By(ctx)
	l.writeAudit(ctx, written, func(ctx context.Context) error {
		if earlier != nil {
			<-earlier
		}
		return l.audits.trail.AppendChange(ctx, e, before, now)
	})
}

// writeAudit writes into the audit in the background, also after the context has ended, and closes
// the channel afterwards.
func (l *Limiter) writeAudit(ctx context.Context, written chan<- struct{}, write func(context.Context) error) {
	l.store.InBackground(func() {
		defer close(written)
		if l.audits.isOff() {
			return
		}
		switch err := write(context.WithoutCancel(ctx)); {
		case l.audits.turnOff(err):
			l.operatorLog.AuditOff(err)
		case err != nil:
			l.operatorLog.AuditFailed(err)
		}
	})
}

// mayHaveActed reports whether an operation that failed may have been carried out.
func mayHaveActed(err error) bool { return err != nil && failure.ClassOf(err).MayHaveCharged() }
