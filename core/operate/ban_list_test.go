package operate_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/operate"
	"github.com/accesslimit/accesslimit/internal/redistest"
)

// strict bans a subject that is refused once. Calls name theirs in a header.
var strict = core.Rule{
	Name: "n", Limit: core.PerHour(1), Ban: core.Ban{After: 1, For: time.Hour},
	Key: bySubject,
}

// bansOf returns all bans of a rule, read in pages.
func bansOf(t *testing.T, limiter *core.Limiter, rule string, page int) (all []operate.BanEntry) {
	t.Helper()
	for after, more := "", true; more; more = after != "" {
		found, next, err := operate.New(limiter).Bans(background, rule, after, page)
		if err != nil {
			t.Fatal(err)
		}
		all, after = append(all, found...), next
	}
	return all
}

// subjectsOf returns the subjects of bans.
func subjectsOf(bans []operate.BanEntry) (subjects []string) {
	for _, b := range bans {
		subjects = append(subjects, b.Subject)
	}
	return subjects
}

// refuse makes a guard refuse subjects.
func refuse(t *testing.T, guard *core.Guard, subjects ...string) {
	t.Helper()
	for _, subject := range subjects {
		wantStatus(t, guard, subject, 200, 429)
	}
}

// banByRefusals makes the guard of a strict rule ban subjects, and waits until they are banned.
func banByRefusals(t *testing.T, limiter *core.Limiter, guard *core.Guard, subjects ...string) {
	t.Helper()
	refuse(t, guard, subjects...)
	for _, subject := range subjects {
		eventually(t, subject+" is banned", func() bool {
			_, ok, err := operate.New(limiter).BanOf(background, "n", subject)
			return ok && err == nil
		})
	}
}

// Every ban by a rule can be exported, lifted and imported, also of subjects that operators cannot ban.
func TestBansOfAnySubject(t *testing.T) {
	onBothEngines(t, func(t *testing.T, options core.Options) {
		limiter := newLimiter(t, options)
		ops, guard := operate.New(limiter), attach(t, limiter, strict)
		banByRefusals(t, limiter, guard, "ip:2001:db8::1", strings.Repeat("x", 2_000))
		exported, err := ops.ExportMarks(background)
		if err != nil {
			t.Fatal(err)
		}
		for _, b := range bansOf(t, limiter, "n", 1) {
			if lifted, err := ops.Unban(background, "n", b.Subject); !lifted || err != nil {
				t.Errorf("%s: %v, %v", b.Subject, lifted, err)
			}
		}
		if left := bansOf(t, limiter, "n", 1); len(left) > 0 {
			t.Errorf("left: %v", left)
		}
		if set, _, err := ops.ImportMarks(background, exported); set != 2 || err != nil {
			t.Errorf("%d set, %v", set, err)
		}
		for _, m := range exported {
			if _, ok, err := ops.BanOf(background, "n", m.Subject); !ok || err != nil {
				t.Errorf("%s: %v, %v", m.Subject, ok, err)
			}
		}
	})
}

// banMany bans subjects by hand, of which some are unbanned, or banned for a short time.
func banMany(t *testing.T, ops *operate.Operator) {
	t.Helper()
	bob := operate.WithActor(background, "bob", "ticket 7")
	for _, err := range []error{
		errorOf(ops.Ban(bob, "n", "c", 2*time.Hour)),
		errorOf(ops.Ban(background, "n", "a", 2*time.Hour)),
		errorOf(ops.Ban(background, "other", "x", time.Hour)),
		errorOf(ops.Ban(background, "short", "x", 50*time.Second)),
		errorOf(ops.Ban(background, "n", "brief", time.Millisecond)),
		errorOf(ops.Ban(background, "n", "forgiven", time.Hour)),
		errorOf(ops.Unban(background, "n", "forgiven")),
		errorOf(ops.Ban(bob, "n", "b", 2*time.Hour)), // in place of the ban by the rule
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
}

// Bans are listed with their causes and ends, in pages, and those that have ended are not. BanOf returns the
// same about one subject.
func TestBansAreListed(t *testing.T) {
	onEveryDeployment(t, func(t *testing.T, options core.Options) {
		limiter := newLimiter(t, options)
		guard := newGuard(t, limiter, strict)
		banByRefusals(t, limiter, guard, "b", "d")
		banMany(t, operate.New(limiter))
		eventually(t, "the brief ban has ended", func() bool { return !slices.Contains(subjectsOf(bansOf(t, limiter, "n", 10)), "brief") })
		if known, err := operate.New(limiter).KnownBans("other"); err != nil || len(known) != 1 || known[0].Cause != "by hand" {
			t.Errorf("the ban of a rule that is not attached is known as %v, %v", known, err)
		}
		if got := bansOf(t, limiter, "short", 10); len(got) != 1 {
			t.Errorf("a ban of less than a minute is listed as %v", got)
		}
		refused := "refused in 1 window"
		want := []operate.BanEntry{
			{Subject: "a", Cause: "by hand"},
			{Subject: "b", Cause: "by hand", Author: "bob", Note: "ticket 7"},
			{Subject: "c", Cause: "by hand", Author: "bob", Note: "ticket 7"},
			{Subject: "d", Cause: refused, Bans: 1},
		}
		for i := range want {
			want[i].Rule = "n"
		}
		for _, page := range []int{1, 2, 3, 1000} {
			got := bansOf(t, limiter, "n", page)
			for i := range got {
				if one, ok, err := operate.New(limiter).BanOf(background, "n", got[i].Subject); err != nil || !ok || one != got[i] {
					t.Errorf("BanOf returns %+v, %v, %v, want %+v", one, ok, err, got[i])
				}
				lasts := time.Hour
				if got[i].Cause == "by hand" {
					lasts = 2 * time.Hour
				}
				if left := time.Until(got[i].Until); left > lasts+time.Second || left < lasts-time.Minute {
					t.Errorf("the ban of %s lasts for %v, want %v", got[i].Subject, left, lasts)
				}
				got[i].Until = time.Time{}
			}
			if !slices.Equal(got, want) {
				t.Errorf("in pages of %d: %+v, want %+v", page, got, want)
			}
		}
		for rule, subject := range map[string]string{"n": "forgiven", "other": "a"} {
			if ban, ok, err := operate.New(limiter).BanOf(background, rule, subject); ok || err != nil {
				t.Errorf("the ban of %s from %s is %+v, %v", subject, rule, ban, err)
			}
		}
		if got := subjectsOf(bansOf(t, limiter, "other", 10)); !slices.Equal(got, []string{"x"}) {
			t.Errorf("the other rule has %v", got)
		}
		if got, next, err := operate.New(limiter).Bans(background, "no such rule", "", 10); len(got) > 0 || next != "" || err != nil {
			t.Errorf("%v, %q, %v", got, next, err)
		}
	})
}

// A ban is listed in all processes, in the background, and when the limiter is closed. Rules in DryRun ban
// nobody.
func TestBansAreWrittenInTheBackground(t *testing.T) {
	server := redistest.Start(t)
	reader := newLimiter(t, core.Options{Redis: server.Client(t), Timeout: patient})
	writer := newLimiter(t, core.Options{Redis: server.Client(t), Timeout: patient})
	dry := strict
	dry.Mode = core.DryRun
	guard, trial := newGuard(t, writer, strict), newGuard(t, writer, dry)
	wantStatus(t, trial, "a dry run", 200, 200, 200)
	awaitDryRuns(t, writer)
	refuse(t, guard, "a")
	eventually(t, "the ban is listed", func() bool { return len(bansOf(t, reader, "n", 10)) == 1 })
	refuse(t, guard, "b")
	writer.Close()
	if got := subjectsOf(bansOf(t, reader, "n", 10)); !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("after Close: %v", got)
	}
}

// Subjects with every byte value are listed, in order, and can be unbanned as they are listed.
func TestBannedSubjectsOfEveryByte(t *testing.T) {
	onBothEngines(t, func(t *testing.T, options core.Options) {
		limiter := newLimiter(t, options)
		guard := newGuard(t, limiter, strict)
		var want []string
		for b := range 256 {
			want = append(want, fmt.Sprintf("%c", b)+string([]byte{byte(b)})+"x")
		}
		banByRefusals(t, limiter, guard, want...)
		slices.Sort(want)
		got := subjectsOf(bansOf(t, limiter, "n", 100))
		if !slices.Equal(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
		for _, subject := range got {
			if changed, err := operate.New(limiter).Unban(background, "n", subject); !changed || err != nil {
				t.Errorf("%q: %v, %v", subject, changed, err)
			}
		}
		if left := bansOf(t, limiter, "n", 100); len(left) > 0 {
			t.Errorf("left: %+v", left)
		}
	})
}

func TestABanInWords(t *testing.T) {
	until := time.Date(2026, 11, 22, 15, 3, 7, 0, time.UTC)
	for want, ban := range map[string]operate.BanEntry{
		"n  s  until 2026-11-22T15:03:07Z, refused in 3 windows in a row": {Rule: "n", Subject: "s", Until: until, Cause: "refused in 3 windows in a row"},
		`n  "query:a=b"  until 2026-11-22T15:03:07Z, by hand`:             {Rule: "n", Subject: "query:a=b", Until: until, Cause: "by hand"},
		`n  "\x00"  until 2026-11-22T15:03:07Z, by hand (bob: "a\nb")`:    {Rule: "n", Subject: "\x00", Until: until, Cause: "by hand", Author: "bob", Note: "a\nb"},
	} {
		if got := ban.String(); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

// The bans of all rules are read in pages, in the order of rules and subjects. A rule that was not there
// when a page began is no error.
func TestAllBans(t *testing.T) {
	onBothEngines(t, func(t *testing.T, options core.Options) {
		l := newLimiter(t, options)
		ops := operate.New(l)
		want := []string{"a user:1", "a user:2", "a user:3", "a\nb user:1", "a\nb user:2", "c user:1", "c user:2"}
		for _, ban := range want {
			name, subject, _ := strings.Cut(ban, " ")
			if _, err := ops.Ban(background, name, subject, time.Hour); err != nil {
				t.Fatal(err)
			}
		}
		for n := 1; n <= len(want)+1; n++ {
			var got []string
			for after, more := "", true; more; more = after != "" {
				page, next, err := ops.AllBans(background, after, n)
				if err != nil || len(page) > n || len(got) > len(want) {
					t.Fatalf("%v, %v", page, err)
				}
				for _, b := range page {
					got = append(got, b.Rule+" "+b.Subject)
				}
				after = next
			}
			if !slices.Equal(got, want) {
				t.Errorf("in pages of %d: %q", n, got)
			}
		}
		if page, _, err := ops.AllBans(background, "bb\nuser:2", 10); err != nil || len(page) != 2 {
			t.Errorf("after a rule that is gone: %v, %v", page, err)
		}
	})
}
