package operate_test

import (
	"encoding/json"
	"errors"
	"reflect"
	"testing"
	"time"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/operate"
)

// Marks are the same after they were exported and imported elsewhere, but for their authors and times.
// Those that have ended are left out.
func TestMarksAreExportedAndImported(t *testing.T) {
	onEveryDeployment(t, func(t *testing.T, options core.Options) {
		from, to := newLimiter(t, options), newLimiter(t, core.Options{})
		until := time.Now().Add(time.Hour).Truncate(time.Microsecond).UTC()
		bob, carol := operate.WithActor(background, "bob", "ticket 7"), operate.WithActor(background, "carol", "restored")
		if _, err := operate.New(from).Ban(bob, "api", "\x00\xff", time.Hour); err != nil {
			t.Fatal(err)
		}
		setOverride(t, from, "api", "ip:203.0.113.0/24", operate.Override{Blocked: true})
		setOverride(t, from, "api", "user:alice", operate.Override{Limits: []core.Limit{core.PerMinute(500), core.PerDay(10_000)}, Until: until, Note: "contract 17"})
		setOverride(t, from, "other", "query:a=b", operate.Override{Unlimited: true})
		exported := func(of *core.Limiter) (all []operate.Mark) {
			marks, err := operate.New(of).ExportMarks(background)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range marks { // through a file
				text, err := json.Marshal(m)
				if err != nil || json.Unmarshal(text, &m) != nil || time.Since(m.Since).Abs() > time.Minute {
					t.Fatalf("%s, %v", text, err)
				}
				m.Since = time.Time{}
				all = append(all, m)
			}
			return all
		}
		want := []operate.Mark{
			{Rule: "api", Subject: `"\x00\xff"`, Kind: "banned", Author: "bob", Note: "ticket 7"},
			{Rule: "api", Subject: "ip:203.0.113.0/24", Kind: "blocked"},
			{Rule: "api", Subject: "user:alice", Kind: "limited", Limits: "500/m, 10000/24h", Until: until, Note: "contract 17"},
			{Rule: "other", Subject: `"query:a=b"`, Kind: "unlimited"},
		}
		got := exported(from)
		if len(got) == len(want) && time.Until(got[0].Until) > 59*time.Minute {
			want[0].Until = got[0].Until
		}
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("exported: %+v, want %+v", got, want)
		}
		past := operate.Mark{Rule: "api", Subject: "user:bob", Kind: "banned", Until: time.Now().Add(-time.Minute)}
		if set, ended, err := operate.New(to).ImportMarks(carol, append(got, past)); set != 4 || ended != 1 || err != nil {
			t.Errorf("%d, %d, %v", set, ended, err)
		}
		for i := range want {
			want[i].Author = "carol"
			if want[i].Note == "" {
				want[i].Note = "restored"
			}
		}
		if got := exported(to); !reflect.DeepEqual(got, want) {
			t.Errorf("imported: %+v, want %+v", got, want)
		}
		if entries := auditOf(t, to); len(entries) != 4 || entries[0].Act != "ban" || entries[2].After != "500/m, 10000/24h until "+until.Format(time.RFC3339Nano) {
			t.Errorf("the audit is %+v", entries)
		}
	})
}

// If a mark is wrong, none is imported.
func TestWrongMarks(t *testing.T) {
	limiter := newLimiter(t, core.Options{})
	ops := operate.New(limiter)
	for _, test := range []struct {
		wrong operate.Mark
		field string
	}{
		{operate.Mark{Subject: "s", Kind: "blocked"}, "name"},
		{operate.Mark{Rule: "api", Subject: "ip:203.0.113.7/24", Kind: "blocked"}, "subject"},
		{operate.Mark{Rule: "api", Subject: "s", Kind: "removed"}, "mark"},
		{operate.Mark{Rule: "api", Subject: "s", Kind: "banned"}, "until"},
		{operate.Mark{Rule: "api", Subject: "s", Kind: "blocked", Limits: "5/m"}, "limits"},
		{operate.Mark{Rule: "api", Subject: "s", Kind: "limited", Limits: "many"}, "limits"},
		{operate.Mark{Rule: "api", Subject: "s", Kind: "limited", Limits: "5/m, 6/m"}, "limits"},
		{operate.Mark{Rule: "api", Subject: "s", Kind: "limited"}, "limits"},
		{operate.Mark{Rule: "api", Subject: "s", Kind: "blocked", Note: string(make([]byte, 1025))}, "note"},
	} {
		var of *core.RuleError
		all := []operate.Mark{{Rule: "api", Subject: "user:alice", Kind: "blocked"}, test.wrong}
		if set, _, err := ops.ImportMarks(background, all); set != 0 || !errors.As(err, &of) || of.Field != test.field {
			t.Errorf("%+v: %d, %v, want an error about %s", test.wrong, set, err, test.field)
		}
	}
	if all, err := ops.ExportMarks(background); len(all) > 0 || err != nil {
		t.Errorf("%+v, %v", all, err)
	}
}
