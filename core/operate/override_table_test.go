package operate_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/operate"
	"github.com/accesslimit/accesslimit/internal/redistest"
)

// listOf returns all overrides, read in pages.
func listOf(t *testing.T, overrides operate.Overrides, page int) (all []operate.Override) {
	t.Helper()
	for after, more := "", true; more; more = after != "" {
		found, next, err := overrides.List(background, after, page)
		if err != nil {
			t.Fatal(err)
		}
		all, after = append(all, found...), next
	}
	return all
}

// Overrides are set, read, listed and removed, and all of that is in the audit.
func TestOverridesAreManaged(t *testing.T) {
	onEveryDeployment(t, func(t *testing.T, options core.Options) {
		limiter := newLimiter(t, options)
		overrides := overridable(t, limiter, "api", core.PerMinute(10).Bucket(20))
		until := time.Now().Add(time.Hour).Truncate(time.Microsecond).UTC()
		bob := operate.WithActor(background, "bob", "ticket 7")
		for _, set := range []struct {
			ctx      context.Context
			subject  string
			override operate.Override
		}{
			{background, "user:b", operate.Override{Max: 1}},
			{background, "user:b", operate.Override{Max: 500, Burst: 700, Until: until, Note: "contract 17"}},
			{bob, "user:c", operate.Override{Unlimited: true}},
			{bob, "user:a", operate.Override{Blocked: true, Note: "abuse", Subject: "ignored", Author: "ignored", Ignored: "ignored"}},
		} {
			if err := overrides.Set(set.ctx, set.subject, set.override); err != nil {
				t.Fatal(err)
			}
		}
		want := []operate.Override{
			{Subject: "user:a", Blocked: true, Author: "bob", Note: "abuse"},
			{Subject: "user:b", Max: 500, Burst: 700, Until: until, Note: "contract 17"},
			{Subject: "user:c", Unlimited: true, Author: "bob", Note: "ticket 7"},
		}
		sinceNow := func(o operate.Override) operate.Override {
			if time.Since(o.Since).Abs() > time.Minute {
				t.Errorf("set at %v", o.Since)
			}
			o.Since = time.Time{}
			return o
		}
		for _, page := range []int{1, 2, 3, 1000} {
			list := listOf(t, overrides, page)
			for i := range list {
				list[i] = sinceNow(list[i])
			}
			if !slices.Equal(list, want) {
				t.Errorf("in pages of %d: %+v, want %+v", page, list, want)
			}
		}
		if got, ok, err := overrides.Get(background, "user:b"); err != nil || !ok || sinceNow(got) != want[1] {
			t.Errorf("%+v, %v, %v; want %+v", got, ok, err, want[1])
		}
		for _, existed := range []bool{true, false} {
			if got, err := overrides.Remove(background, "user:b"); err != nil || got != existed {
				t.Errorf("%v, %v; want %v", got, err, existed)
			}
			if got, ok, err := overrides.Get(background, "user:b"); err != nil || ok || got != (operate.Override{}) {
				t.Errorf("after it was removed: %+v, %v, %v", got, ok, err)
			}
		}
		if list := listOf(t, overrides, 1000); len(list) != 2 || list[1].Subject != "user:c" {
			t.Errorf("after one was removed: %+v", list)
		}
		wantOverridesAudited(t, limiter, until)
	})
}

// wantOverridesAudited checks the audit of these acts.
func wantOverridesAudited(t *testing.T, limiter *core.Limiter, until time.Time) {
	t.Helper()
	ends := until.Format(time.RFC3339Nano)
	wantAudit := []operate.AuditEntry{
		{Act: "override", Subject: "user:b", After: "1 burst 1"},
		{Act: "override", Subject: "user:b", Before: "1 burst 1", After: "500 burst 700 until " + ends, Note: "contract 17"},
		{Act: "override", Subject: "user:c", After: "unlimited", Author: "bob", Note: "ticket 7"},
		{Act: "override", Subject: "user:a", After: "blocked", Author: "bob", Note: "ticket 7"},
		{Act: "override removed", Subject: "user:b", Before: "500 burst 700 until " + ends},
	}
	for i := range wantAudit {
		wantAudit[i].Rule = "api"
	}
	if got := auditOf(t, limiter); !slices.Equal(got, wantAudit) {
		t.Errorf("the audit is %+v, want %+v", got, wantAudit)
	}
}

// While a slot of a cluster moves, overrides are written where it goes, and listed from there.
func TestOverridesWhileASlotMoves(t *testing.T) {
	cluster := redistest.StartCluster(t)
	limiter := newLimiter(t, core.Options{Redis: cluster.Client(t), Timeout: patient})
	overrides := overridable(t, limiter, "n", core.PerHour(2))
	want := []string{cluster.Moving(t), "user:a", "user:b", "user:c"}
	for _, subject := range want {
		if err := overrides.Set(background, subject, operate.Override{Max: 3}); err != nil {
			t.Fatal(err)
		}
	}
	var got []string
	for _, o := range listOf(t, overrides, 10) {
		got = append(got, o.Subject)
	}
	if !slices.Equal(got, want) {
		t.Errorf("the list is %q, want %q", got, want)
	}
}

// wrongOverrides are overrides of rules named after their limits, and the field that is wrong.
var wrongOverrides = []struct {
	rule, subject string
	override      operate.Override
	field         string
}{
	{"window", "s", operate.Override{}, "Override"},
	{"window", "s", operate.Override{Until: time.Now().Add(time.Hour), Note: "none"}, "Override"},
	{"window", "s", operate.Override{Max: 1, Blocked: true}, "Override"},
	{"window", "s", operate.Override{Max: 1, Unlimited: true}, "Override"},
	{"window", "s", operate.Override{Unlimited: true, Blocked: true}, "Override"},
	{"window", "s", operate.Override{Max: -1}, "Override.Max"},
	{"window", "s", operate.Override{Max: noMax()}, "Override.Max"},
	{"window", "s", operate.Override{Max: 5, Burst: 5}, "Override.Burst"},
	{"bucket", "s", operate.Override{Burst: 5, Blocked: true}, "Override.Burst"},
	{"bucket", "s", operate.Override{Max: 5, Burst: -5}, "Override.Burst"},
	{"bucket", "s", operate.Override{Max: 7, Burst: mostPermits}, "Override.Burst"},
	{"log", "s", operate.Override{Max: 10_001}, "Override.Max"},
	{"slots", "s", operate.Override{Max: 10_001}, "Override.Max"},
	{"window", "s", operate.Override{Max: 5, Until: time.Now().Add(-time.Second)}, "Override.Until"},
	{"window", "s", operate.Override{Max: 5, Until: time.Unix(-1, 0)}, "Override.Until"},
	{"window", "s", operate.Override{Max: 5, Until: time.Date(2300, 1, 1, 0, 0, 0, 0, time.UTC)}, "Override.Until"},
	{"window", "s", operate.Override{Max: 5, Note: strings.Repeat("n", 1025)}, "Override.Note"},
	{"window", strings.Repeat("s", 1025), operate.Override{Max: 5}, "subject"},
}

// A wrong override or subject is a RuleError, and changes nothing.
func TestWrongOverrides(t *testing.T) {
	onBothEngines(t, func(t *testing.T, options core.Options) {
		limiter := newLimiter(t, options)
		limits := map[string]core.Limit{
			"window": core.PerMinute(10), "log": core.PerMinute(10).Log(), "bucket": core.PerMinute(10).Bucket(20), "slots": core.InFlight(3),
		}
		of := make(map[string]operate.Overrides)
		for name, limit := range limits {
			of[name] = overridable(t, limiter, name, limit)
		}
		for _, test := range wrongOverrides {
			var wrong *core.RuleError
			if err := of[test.rule].Set(background, test.subject, test.override); !errors.As(err, &wrong) || wrong.Field != test.field || wrong.Rule != test.rule {
				t.Errorf("%q, %+v: %v, want a RuleError about %s", test.subject, test.override, err, test.field)
			}
		}
		for name, overrides := range of {
			if list := listOf(t, overrides, 10); len(list) > 0 {
				t.Errorf("%s: %+v", name, list)
			}
		}
		if entries := auditOf(t, limiter); len(entries) > 0 {
			t.Errorf("the audit is %+v", entries)
		}
		// The largest of everything.
		if err := of["log"].Set(background, strings.Repeat("s", 1024), operate.Override{Max: 10_000, Note: strings.Repeat("n", 1024)}); err != nil {
			t.Error(err)
		}
	})
}

// Only rules with Overrides have some.
func TestOverridesNeedARule(t *testing.T) {
	limiter := newLimiter(t, core.Options{})
	newGuard(t, limiter, core.Rule{Name: "without", Seconds: 1})
	newGuard(t, limiter, core.Rule{Name: "dry", Seconds: 1, Mode: core.DryRun, Overrides: true})
	for _, name := range []string{"", "without", "unknown", "dr"} {
		var wrong *core.RuleError
		if _, err := operate.New(limiter).Overrides(name); !errors.As(err, &wrong) {
			t.Errorf("%q: %v", name, err)
		}
	}
	limiter.MustCounter("handle", core.PerMinute(5)).WithOverrides()
	for _, name := range []string{"dry", "handle"} { // a rule in DryRun obeys the overrides of its name
		overrides, err := operate.New(limiter).Overrides(name)
		if err = errors.Join(err, overrides.Set(background, "s", operate.Override{Max: 7})); err != nil {
			t.Error(err)
		}
	}
	var zero operate.Overrides
	_, _, errGet := zero.Get(background, "s")
	_, _, errList := zero.List(background, "", 1)
	for _, err := range []error{zero.Set(background, "s", operate.Override{Max: 1}), errGet, errorOf(zero.Remove(background, "s")), errList} {
		if err == nil {
			t.Error("zero Overrides work")
		}
	}
}

// An override that has ended is gone, and one that was made for another limit is shown as ignored.
func TestOverridesThatEnd(t *testing.T) {
	onBothEngines(t, func(t *testing.T, options core.Options) {
		limiter := newLimiter(t, options)
		overrides := overridable(t, limiter, "n", core.PerMinute(10))
		// On a busy machine, a moment that ends soon may be over before it is set.
		eventually(t, "it is set", func() bool {
			return overrides.Set(background, "s", operate.Override{Blocked: true, Until: time.Now().Add(50 * time.Millisecond)}) == nil
		})
		if !redistest.WaitUntil(func() bool { _, ok, err := overrides.Get(background, "s"); return err == nil && !ok }, patient) {
			t.Error("it does not end")
		}
		if list := listOf(t, overrides, 10); len(list) > 0 {
			t.Errorf("the list has %+v", list)
		}
		if existed, err := overrides.Remove(background, "s"); existed || err != nil {
			t.Errorf("%v, %v", existed, err)
		}
	})
}

// Values that this library did not write, or wrote for another limit, are shown as ignored, and can
// be replaced and removed.
func TestOverridesThatAreIgnored(t *testing.T) {
	client := redistest.Start(t).Client(t)
	older := overridable(t, newLimiter(t, core.Options{Redis: client, Timeout: patient}), "n", core.PerHour(10))
	limiter := newLimiter(t, core.Options{Redis: client, Timeout: patient})
	overrides := overridable(t, limiter, "n", core.PerMinute(10))
	for _, subject := range []string{"a", "b", "c"} {
		if err := older.Set(background, subject, operate.Override{Max: 500}); err != nil {
			t.Fatal(err)
		}
	}
	client.Set(background, "accesslimit:{b}:n:ov1", "by hand", 0)
	client.Del(background, "accesslimit:{c}:n:ov1")
	client.RPush(background, "accesslimit:{c}:n:ov1", "a list")
	list := listOf(t, overrides, 10)
	if len(list) != 3 || list[0].Max != 500 || !strings.Contains(list[0].Ignored, "another window") ||
		!strings.Contains(list[1].Ignored, "not an override") || !strings.Contains(list[2].Ignored, "not an override") {
		t.Errorf("%+v", list)
	}
	if got, ok, err := overrides.Get(background, "b"); err != nil || !ok || got != list[1] {
		t.Errorf("%+v, %v, %v", got, ok, err)
	}
	var failed *core.StoreError
	if err := overrides.Set(background, "c", operate.Override{Max: 5}); !errors.As(err, &failed) || failed.Class != core.StoreForeignValue {
		t.Errorf("%v, want a foreign value, which is left as it is", err)
	}
	if existed, err := overrides.Remove(background, "c"); !existed || err != nil {
		t.Errorf("%v, %v", existed, err)
	}
	for _, subject := range []string{"a", "b", "c"} {
		if err := overrides.Set(background, subject, operate.Override{Max: 5}); err != nil {
			t.Error(err)
		}
	}
	for _, o := range listOf(t, overrides, 10) {
		if o.Max != 5 || o.Ignored != "" {
			t.Errorf("%+v", o)
		}
	}
	entries := auditOf(t, limiter)
	if len(entries) != 7 || entries[4].Before != "500" || !strings.Contains(entries[5].Before, "not an override") {
		t.Errorf("%+v", entries)
	}
}
