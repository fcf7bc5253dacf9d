package operate

import (
	"context"
	"time"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/internal/audit"
)

// AuditEntry is one act of an operator: see [Operator.Audit]. Texts that are longer than 255 bytes
// are cut.
type AuditEntry struct {
	// ID identifies the entry. Audit takes it to return older ones.
	ID string `json:"id"`
	// Time is when the entry was written, to the millisecond, by the clock of Redis, or of this
	// process if there is no Redis.
	Time time.Time `json:"time"`
	// Act is "override", "override removed", "ban", "unban", "reset" or "rules", for a change of
	// the rules of a [core.RuleSet].
	Act string `json:"act"`
	// Rule is the name of the rule or the handle, and Subject the subject that the act was about.
	// Both are empty for a change of rules.
	Rule    string `json:"rule,omitempty"`
	Subject string `json:"subject,omitempty"`
	// Author and Note are those of [WithActor], or empty. For an override, if the context has no
	// note, Note is the override's own.
	Author string `json:"author,omitempty"`
	Note   string `json:"note,omitempty"`
	// Before and After describe what the act changed: an override, or the version of the rules. For
	// a ban, After says how long it lasts. Both are empty for other acts. If no reply came, the act
	// may or may not have been carried out, and After begins with "perhaps".
	Before string `json:"before,omitempty"`
	After  string `json:"after,omitempty"`
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
// The error is a *[core.RuleError] if n or before is wrong. Others are those of [core.Counter].
func (o *Operator) Audit(ctx context.Context, before string, n int) ([]AuditEntry, error) {
	if err := o.checkAudit(ctx, before, n); err != nil {
		return nil, err
	}
	found, err := audit.Read(ctx, o.parts.Audits, before, n)
	if err != nil {
		return nil, o.failedOptional("audit", err, o.parts.Log.AuditUnread)
	}
	entries := make([]AuditEntry, len(found))
	for i := range found {
		entries[i] = AuditEntry(found[i])
	}
	return entries, nil
}

// checkAudit returns what is wrong with the arguments of Audit, or nil.
func (o *Operator) checkAudit(ctx context.Context, before string, n int) error {
	if err := o.made(); err != nil {
		return err
	}
	switch {
	case n < 1 || n > maxAuditPage:
		return &core.RuleError{Field: "n", Value: n, Why: "must be 1 to 1000 entries"}
	case before != "" && !audit.IsID(before):
		return &core.RuleError{Field: "before", Value: before, Why: "must be the ID of an entry, or empty for the newest ones"}
	}
	return ctx.Err()
}

// RecordAttempt writes into the audit that an act was tried without effect: it was forbidden, it
// failed, or it changed nothing. It is for programs through which operators act, because
// [Operator.Audit] otherwise holds only acts that changed something. Act, Rule and Subject of the
// entry describe the act, and After gives the reason. The author and the note are those of
// [WithActor]. Other fields are ignored.
//
// It returns when the entry is written, after Timeout, or when the context ends. It never fails: if
// the entry cannot be written, the log says why. It does not write the log line that WithActor
// describes. Danger: each entry displaces the oldest one of a full audit, so bound how many of them
// strangers can cause.
func (o *Operator) RecordAttempt(ctx context.Context, attempt AuditEntry) {
	if err := o.made(); err != nil {
		panic(err)
	}
	o.parts.Audits.Record(ctx, time.Now(), audit.Entry{Act: attempt.Act, Rule: attempt.Rule, Subject: attempt.Subject, After: attempt.After})
}
