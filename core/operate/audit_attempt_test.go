package operate_test

import (
	"testing"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/operate"
)

// An attempt is in the audit with its author and note, and changes nothing else.
func TestRecordAttempt(t *testing.T) {
	onEveryDeployment(t, func(t *testing.T, options core.Options) {
		limiter := newLimiter(t, options)
		want := operate.AuditEntry{
			Act: "ban", Rule: "api", Subject: "user:alice\x00\xff", Author: "bob", Note: "ticket 7", After: "not done: a viewer may not act",
		}
		attempt := want
		attempt.ID, attempt.Author, attempt.Note, attempt.Before = "1-1", "mallory", "hers", "ignored"
		operate.New(limiter).RecordAttempt(operate.WithActor(background, "bob", "ticket 7"), attempt)
		if got := auditOf(t, limiter); len(got) != 1 || got[0] != want {
			t.Errorf("the audit is %+v, want %+v", got, want)
		}
	})
}

// While Redis is down, an attempt waits no longer than Timeout.
func TestRecordAttemptWithoutRedis(t *testing.T) {
	limiter := newLimiter(t, deadRedis(t))
	operate.New(limiter).RecordAttempt(background, operate.AuditEntry{Act: "ban"})
}
