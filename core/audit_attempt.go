package core

import (
	"context"
	"time"

	"github.com/accesslimit/accesslimit/core/internal/audit"
)

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
	l.mustBeMade()
	l.record(ctx, time.Now(), audit.Entry{Act: attempt.Act, Rule: attempt.Rule, Subject: attempt.Subject, After: attempt.After})
}
