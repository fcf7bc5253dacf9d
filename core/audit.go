package core

import (
	"context"
	"time"

	"github.com/accesslimit/accesslimit/core/internal/audit"
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

// audit is [Limiter.Audit].
func (o *operations) audit(ctx context.Context, before string, n int) ([]AuditEntry, error) {
	switch {
	case o == nil:
		return nil, errNoLimiter
	case n < 1 || n > maxAuditPage:
		return nil, &RuleError{Field: "n", Value: n, Why: "must be 1 to 1000 entries"}
	case before != "" && !audit.IsID(before):
		return nil, &RuleError{Field: "before", Value: before, Why: "must be the ID of an entry, or empty for the newest ones"}
	case ctx.Err() != nil:
		return nil, ctx.Err()
	}
	found, err := o.audits.Read(ctx, before, n)
	if err != nil {
		return nil, o.failures.errorOfOptional("audit", err, o.log.AuditUnread)
	}
	entries := make([]AuditEntry, len(found))
	for i := range found {
		entries[i] = AuditEntry(found[i])
	}
	return entries, nil
}
