package operate_test

import (
	"context"
	"errors"
	"reflect"
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
		more := []core.Limit{core.PerMinute(500).Bucket(700), core.PerCalendarMonth(10_000, "UTC")}
		until := time.Now().Add(time.Hour).Truncate(time.Microsecond).UTC()
		bob := operate.WithActor(background, "bob", "ticket 7")
		for _, set := range []struct {
			ctx      context.Context
			subject  string
			override operate.Override
		}{
			{background, "user:b", per(core.PerMinute(1))},
			{background, "user:b", operate.Override{Limits: more, Until: until, Note: "contract 17"}},
			{bob, "user:c", operate.Override{Unlimited: true}},
			{bob, "user:a", operate.Override{Blocked: true, Note: "abuse", Subject: "ignored", Author: "ignored"}},
		} {
			if err := overrides.Set(set.ctx, set.subject, set.override); err != nil {
				t.Fatal(err)
			}
		}
		want := []operate.Override{
			{Subject: "user:a", Blocked: true, Author: "bob", Note: "abuse"},
			{Subject: "user:b", Limits: more, Until: until, Note: "contract 17"},
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
			if !reflect.DeepEqual(list, want) {
				t.Errorf("in pages of %d: %+v, want %+v", page, list, want)
			}
		}
		if got, ok, err := overrides.Get(background, "user:b"); err != nil || !ok || !reflect.DeepEqual(sinceNow(got), want[1]) {
			t.Errorf("%+v, %v, %v; want %+v", got, ok, err, want[1])
		}
		for _, existed := range []bool{true, false} {
			if got, err := overrides.Remove(background, "user:b"); err != nil || got != existed {
				t.Errorf("%v, %v; want %v", got, err, existed)
			}
			if got, ok, err := overrides.Get(background, "user:b"); err != nil || ok || !reflect.DeepEqual(got, operate.Override{}) {
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
		{Act: "override", Subject: "user:b", After: "1/m"},
		{Act: "override", Subject: "user:b", Before: "1/m", After: "500/m burst 700, 10000/month@UTC until " + ends, Note: "contract 17"},
		{Act: "override", Subject: "user:c", After: "unlimited", Author: "bob", Note: "ticket 7"},
		{Act: "override", Subject: "user:a", After: "blocked", Author: "bob", Note: "ticket 7"},
		{Act: "override removed", Subject: "user:b", Before: "500/m burst 700, 10000/month@UTC until " + ends},
	}
	for i := range wantAudit {
		wantAudit[i].Rule = "api"
	}
	if got := auditOf(t, limiter); !slices.Equal(got, wantAudit) {
		t.Errorf("the audit is %+v, want %+v", got, wantAudit)
	}
}

// wrongOverrides are wrong overrides, and the fields that are wrong.
var wrongOverrides = []struct {
	subject  string
	override operate.Override
	field    string
}{
	{"s", operate.Override{}, "Override"},
	{"s", operate.Override{Until: time.Now().Add(time.Hour), Note: "none"}, "Override"},
	{"s", operate.Override{Limits: []core.Limit{core.PerHour(1)}, Blocked: true}, "Override"},
	{"s", operate.Override{Limits: []core.Limit{core.PerHour(1)}, Unlimited: true}, "Override"},
	{"s", operate.Override{Unlimited: true, Blocked: true}, "Override"},
	{"s", per(core.PerHour(-1)), "Override.Limits"},
	{"s", per(core.PerHour(10_001).Log()), "Override.Limits"},
	{"s", per(core.PerHour(5), core.PerHour(6)), "Override.Limits"},
	{"s", per(core.PerHour(5), core.Unlimited), "Override.Limits"},
	{"s", per(make([]core.Limit, 9)...), "Override.Limits"},
	{"s", operate.Override{Blocked: true, Until: time.Now().Add(-time.Second)}, "Override.Until"},
	{"s", operate.Override{Blocked: true, Until: time.Unix(-1, 0)}, "Override.Until"},
	{"s", operate.Override{Blocked: true, Until: time.Date(2300, 1, 1, 0, 0, 0, 0, time.UTC)}, "Override.Until"},
	{"s", operate.Override{Blocked: true, Note: strings.Repeat("n", 1025)}, "Override.Note"},
	{strings.Repeat("s", 1025), operate.Override{Blocked: true}, "subject"},
	{"ip:203.0.113.7/24", operate.Override{Blocked: true}, "subject"},
	{"ip:203.0.113.7/32", operate.Override{Blocked: true}, "subject"},
	{"ip:203.0.0.0/7", operate.Override{Blocked: true}, "subject"},
	{"ip:2001:db8::/65", operate.Override{Blocked: true}, "subject"},
}

// A wrong override or subject is a RuleError, and changes nothing.
func TestWrongOverrides(t *testing.T) {
	onBothEngines(t, func(t *testing.T, options core.Options) {
		limiter := newLimiter(t, options)
		overrides := overridable(t, limiter, "n", core.PerMinute(10))
		for _, test := range wrongOverrides {
			var wrong *core.RuleError
			if err := overrides.Set(background, test.subject, test.override); !errors.As(err, &wrong) || wrong.Field != test.field || wrong.Rule != "n" {
				t.Errorf("%q, %+v: %v, want a RuleError about %s", test.subject, test.override, err, test.field)
			}
		}
		if list := listOf(t, overrides, 10); len(list) > 0 {
			t.Errorf("%+v", list)
		}
		if entries := auditOf(t, limiter); len(entries) > 0 {
			t.Errorf("the audit is %+v", entries)
		}
		// The largest of everything.
		if err := overrides.Set(background, strings.Repeat("s", 1024), operate.Override{Blocked: true, Note: strings.Repeat("n", 1024)}); err != nil {
			t.Error(err)
		}
	})
}

// Rules that this process does not have may have overrides, but none without a name.
func TestOverridesOfNames(t *testing.T) {
	limiter := newLimiter(t, core.Options{})
	for name, ok := range map[string]bool{"": false, "unknown": true} {
		if _, err := operate.New(limiter).Overrides(name); (err == nil) != ok {
			t.Errorf("%q: %v", name, err)
		}
	}
	var zero operate.Overrides
	_, _, errGet := zero.Get(background, "s")
	_, _, errList := zero.List(background, "", 1)
	for _, err := range []error{zero.Set(background, "s", operate.Override{Blocked: true}), errGet, errorOf(zero.Remove(background, "s")), errList} {
		if err == nil {
			t.Error("zero Overrides work")
		}
	}
}

// An override that has ended is gone.
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
