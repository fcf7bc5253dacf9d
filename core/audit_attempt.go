package core

import (
	"context"
	"time"

	"github.com/accesslimit/accesslimit/core/internal/audit"
)

// RecordAttempt writes into the audit that an act was tried, and not carried out: because it was
// forbidden, or failed, or changed nothing. It is for programs through which operators act, because
// [Limiter.Audit] otherwise holds only acts that changed something. Act, Rule and Subject of the
// entry say what was tried, and After says why it was not done. The author and the note are those
// of [WithActor]. The other fields are ignored.
//
// It returns when the entry is written, or after Timeout, or when the context ends. It never fails:
// if the entry cannot be written, the log says why. The line that WithActor describes is not
// logged. Danger: the oldest entries make room for it, so bound how often strangers can get here.
func (l *Limiter) RecordAttempt(ctx context.Context, attempt AuditEntry) {
	l.mustBeMade()
	l.record(ctx, time.Now(), audit.Entry{Act: attempt.Act, Rule: attempt.Rule, Subject: attempt.Subject, After: attempt.After})
}
