package operate_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/operate"
	"github.com/accesslimit/accesslimit/internal/logtest"
	"github.com/accesslimit/accesslimit/internal/redistest"
)

// auditKey is the Redis key of the audit stream.
const auditKey = "accesslimit:{%audit}:as1"

// rulesChanged writes a change of rules into the audit, and returns when that is done.
func rulesChanged(l *core.Limiter, before, now string) {
	written := make(chan struct{})
	partsOf(l).Audits.RulesChanged(background, before, now, nil, written)
	<-written
}

// auditOf returns the newest entries without what differs from run to run, oldest first.
func auditOf(t *testing.T, limiter *core.Limiter) (entries []operate.AuditEntry) {
	t.Helper()
	entries, err := operate.New(limiter).Audit(background, "", 1000)
	if err != nil {
		t.Fatal(err)
	}
	for i := range entries {
		e := &entries[i]
		if e.ID == "" || time.Since(e.Time).Abs() > time.Minute {
			t.Errorf("an entry has the ID %q, and was written at %v", e.ID, e.Time)
		}
		e.ID, e.Time = "", time.Time{}
	}
	slices.Reverse(entries)
	return entries
}

// Pages follow each other without a gap, newest first.
func TestAuditPages(t *testing.T) {
	onBothEngines(t, func(t *testing.T, options core.Options) {
		limiter := newLimiter(t, options)
		newGuard(t, limiter, twice)
		for i := range 7 {
			ban(t, limiter, "n", fmt.Sprint("s", i), time.Hour)
		}
		var got []string
		for before := ""; ; {
			page, err := operate.New(limiter).Audit(background, before, 3)
			if err != nil {
				t.Fatal(err)
			}
			if len(page) == 0 {
				break
			}
			for _, e := range page {
				got, before = append(got, e.Subject), e.ID
			}
		}
		if want := []string{"s6", "s5", "s4", "s3", "s2", "s1", "s0"}; !slices.Equal(got, want) {
			t.Errorf("the pages have %v, want %v", got, want)
		}
	})
}

// The texts of an entry are cut, because callers may choose subjects.
func TestAuditCutsTexts(t *testing.T) {
	onBothEngines(t, func(t *testing.T, options core.Options) {
		limiter := newLimiter(t, options)
		long := strings.Repeat("é", 10_000)
		if _, err := operate.New(limiter).Ban(operate.WithActor(background, long, long), long, long[:1000], time.Hour); err != nil {
			t.Fatal(err)
		}
		e := auditOf(t, limiter)[0]
		for _, text := range []string{e.Rule, e.Subject, e.Author, e.Note} {
			if len(text) != 254 {
				t.Errorf("a text has %d bytes", len(text))
			}
		}
	})
}

// The stream is bounded. An entry that somebody else wrote does not hide the others.
func TestTheAuditStreamIsBounded(t *testing.T) {
	client := redistest.Start(t).Client(t)
	limiter := newLimiter(t, core.Options{Redis: client, Timeout: patient})
	pipe := client.Pipeline()
	for range 11_000 {
		pipe.XAdd(background, &redis.XAddArgs{Stream: auditKey, Values: []string{"written", "by hand"}})
	}
	if _, err := pipe.Exec(background); err != nil {
		t.Fatal(err)
	}
	ban(t, limiter, "n", "s", time.Hour)
	if n := client.XLen(background, auditKey).Val(); n < 10_000 || n > 10_200 {
		t.Errorf("%d entries are kept", n)
	}
	if got := auditOf(t, limiter); len(got) != 1000 || got[999].Act != "ban" || got[998] != (operate.AuditEntry{}) {
		t.Errorf("%d entries, the last ones %+v", len(got), got[max(0, len(got)-2):])
	}
}

// An act is done although it cannot be written, and the log says why.
func TestAnActDoesNotFailForTheAudit(t *testing.T) {
	client := redistest.Start(t).Client(t)
	var log logtest.Log
	limiter := newLimiter(t, core.Options{Redis: client, Timeout: patient, Logger: log.Logger()})
	if err := client.Set(background, auditKey, "in the way", 0).Err(); err != nil {
		t.Fatal(err)
	}
	if changed, err := operate.New(limiter).Ban(background, "n", "s", time.Hour); !changed || err != nil {
		t.Errorf("%v, %v", changed, err)
	}
	if log.Count("audit stream", "WRONGTYPE") != 1 {
		t.Error(log.String())
	}
	var failed *core.StoreError
	if _, err := operate.New(limiter).Audit(background, "", 1); !errors.As(err, &failed) || failed.Class != core.StoreForeignValue {
		t.Errorf("%v, want a foreign value", err)
	}
}

// An act whose reply was lost is written as one that may have been done. One that Redis never saw
// is not.
func TestAuditOfAnActWithoutAReply(t *testing.T) {
	server := redistest.Start(t)
	var sent atomic.Bool
	client := server.Client(t, noteSent(func(b []byte) {
		if bytes.Contains(b, []byte(`"mark":"banned"`)) {
			sent.Store(true)
		}
	}))
	limiter := newLimiter(t, core.Options{Redis: client, Timeout: patient})
	if _, err := operate.New(limiter).Unban(background, "n", "s"); err != nil { // connects
		t.Fatal(err)
	}
	other := newLimiter(t, core.Options{Redis: server.Client(t), Timeout: patient, Prefix: "other"})
	if _, err := operate.New(other).Ban(background, "n", "s", time.Hour); err != nil { // so that Redis has the script
		t.Fatal(err)
	}
	server.Stop()
	eventually(t, "the act is sent in time", func() bool {
		ctx, cancel := context.WithTimeout(background, time.Second)
		defer cancel()
		for range 2 { // the second time, the context has ended
			if _, err := operate.New(limiter).Ban(ctx, "n", "s", time.Hour); !errors.Is(err, context.DeadlineExceeded) {
				t.Fatalf("%v, want that the context has ended", err)
			}
		}
		return sent.Load()
	})
	server.Continue()
	limiter.Close() // waits for the entry
	want := []operate.AuditEntry{{Act: "ban", Rule: "n", Subject: "s", After: "perhaps: banned for 1h0m0s"}}
	if got := auditOf(t, limiter); !slices.Equal(got, want) {
		t.Errorf("the audit is %+v, want %+v", got, want)
	}
	if page, _, err := operate.New(limiter).Bans(background, "n", "", 10); err != nil || len(page) != 1 || page[0].Subject != "s" {
		t.Errorf("the ban is listed as %v, %v", page, err)
	}
}

// A change of rules is written once for the fleet, also when the fleet returns to an older version.
func TestAChangeOfRulesIsWrittenOnce(t *testing.T) {
	client := redistest.Start(t).Client(t)
	var fleet [3]*core.Limiter
	for i := range fleet {
		fleet[i] = newLimiter(t, core.Options{Redis: client, Timeout: patient})
	}
	changes := []operate.AuditEntry{
		{After: "1"}, {Before: "1", After: "2"}, {Before: "2", After: "1"}, {Before: "1", After: "2"}, {Before: "2", After: "3"},
	}
	for _, c := range changes {
		for _, l := range fleet {
			rulesChanged(l, c.Before, c.After)
		}
	}
	rulesChanged(fleet[0], "", "2") // a process that starts with an older version
	for i := range changes {
		changes[i].Act = "rules"
	}
	if got := auditOf(t, fleet[0]); !slices.Equal(got, changes) {
		t.Errorf("the audit is %+v, want %+v", got, changes)
	}
}
