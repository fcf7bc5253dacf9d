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
	"github.com/accesslimit/accesslimit/internal/logtest"
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

// Acts report whether they changed anything. Those that did are in the audit, with or without an actor,
// and the log has all acts of an actor.
func TestActsAreReported(t *testing.T) {
	onEveryDeployment(t, func(t *testing.T, options core.Options) {
		var log logtest.Log
		options.Logger = log.Logger()
		limiter := newLimiter(t, options)
		guard, counter, slots := newGuard(t, limiter, twice), limiter.MustCounter("n", core.PerHour(3), core.PerDay(5).Log()), limiter.MustSlots("n", 1)
		act := func(ctx context.Context) (did []operate.AuditEntry) {
			t.Helper()
			_, charged := counter.Allow(ctx, "s")
			_, _, held := slots.Hold(ctx, "s")
			if err := errors.Join(charged, held); err != nil {
				t.Fatal(err)
			}
			for i, step := range actsOn(operate.New(limiter), guard, counter, slots) {
				if changed, err := step.do(ctx, "s"); err != nil || changed != (step.act != "") {
					t.Errorf("act %d: %v, %v; want %q", i, changed, err, step.act)
				}
				if step.act != "" {
					did = append(did, operate.AuditEntry{Act: step.act, Rule: "n", Subject: "s", After: step.after})
				}
			}
			return did
		}
		want := act(background)
		if log.Count("operator") > 0 {
			t.Errorf("without an actor: %s", log.String())
		}
		by := act(operate.WithActor(background, "bob", "ticket 7"))
		for i := range by {
			by[i].Author, by[i].Note = "bob", "ticket 7"
		}
		if got := auditOf(t, limiter); !slices.Equal(got, append(want, by...)) {
			t.Errorf("the audit is %+v, want %+v", got, append(want, by...))
		}
		for words, lines := range map[string]int{"act=ban": 2, "act=unban": 2, "act=reset": 5, "changed=true": len(by), "": 9} {
			if got := log.Count("author=bob", `note="ticket 7"`, "subject=s", "rule=n", words); got != lines {
				t.Errorf("%d lines with %q, want %d: %s", got, words, lines, log.String())
			}
		}
	})
}

// operatorAct is what an operator does to a subject, and what the audit says of it: nothing if it changes
// nothing.
type operatorAct struct {
	do         func(ctx context.Context, subject string) (changed bool, err error)
	act, after string
}

// actsOn returns acts on the rule n, of which some change nothing any more.
func actsOn(ops *operate.Operator, guard *core.Guard, counter core.Counter, slots core.Slots) []operatorAct {
	ban := func(span time.Duration) func(context.Context, string) (bool, error) {
		return func(ctx context.Context, subject string) (bool, error) { return ops.Ban(ctx, "n", subject, span) }
	}
	unban := func(ctx context.Context, subject string) (bool, error) { return ops.Unban(ctx, "n", subject) }
	return []operatorAct{
		{counter.Reset, "reset", ""}, {counter.Reset, "", ""}, {guard.Reset, "", ""}, {slots.Reset, "reset", ""}, {slots.Reset, "", ""},
		{ban(time.Hour), "ban", "banned for 1h0m0s"}, {ban(time.Minute), "ban", "banned for 1m0s"},
		{unban, "unban", ""}, {unban, "", ""},
	}
}

// An act that failed is logged as one.
func TestAFailedActIsLogged(t *testing.T) {
	var log logtest.Log
	down := deadRedis(t)
	down.Logger = log.Logger()
	ops, ctx := operate.New(newLimiter(t, down)), operate.WithActor(background, "bob", "ticket 7")
	if _, err := ops.Ban(ctx, "n", "s", time.Hour); err == nil || log.Count("act=ban", "author=bob", "changed=false", "error=") != 1 {
		t.Errorf("%v: %s", err, log.String())
	}
	_, _ = ops.Ban(ctx, "n", "192.0.2.1", time.Hour) // refused, so nothing was tried
	if log.Count("operator") != 1 {
		t.Errorf("%s", log.String())
	}
}

// Every method by which operators change something writes one entry with their name, and nothing
// else does. A method that is added must be tried here, or named among those that are no acts.
func TestEveryActIsAudited(t *testing.T) {
	limiter := newLimiter(t, core.Options{})
	rule, limit := core.Rule{Name: "n", Limit: core.PerHour(5), Ban: core.Ban{After: 1, For: time.Hour}}, core.PerHour(5)
	guard, check := newGuard(t, limiter, rule), limiter.MustCheck(rule)
	overrides, err := operate.New(limiter).Overrides(rule.Name)
	if err != nil {
		t.Fatal(err)
	}
	counter, pacer, log, slots := limiter.MustCounter("c", limit), limiter.MustPacer("p", limit.Bucket(5)), limiter.MustLog("l", limit.Log()), limiter.MustSlots("s", 1)
	const subject = "ip:192.0.2.1"
	use := func() error {
		_, charged := counter.Allow(background, subject)
		_, reserved := pacer.Reserve(background, subject, 1)
		_, logged := log.Allow(background, subject, "")
		_, _, held := slots.Hold(background, subject)
		return errors.Join(charged, reserved, logged, held)
	}
	call := func() { wantStatus(t, guard, "s", 200) }
	bob := operate.WithActor(background, "bob", "ticket 7")
	acts := []struct {
		method, act string
		do          func() (changed bool, err error)
	}{
		{"Guard.Reset", "reset", func() (bool, error) { call(); return guard.Reset(bob, subject) }},
		{"Check.Reset", "reset", func() (bool, error) { call(); return check.Reset(bob, subject) }},
		{"Operator.Reset", "reset", func() (bool, error) { call(); return operate.New(limiter).Reset(bob, rule.Name, subject) }},
		{"Operator.Ban", "ban", func() (bool, error) { return operate.New(limiter).Ban(bob, rule.Name, subject, time.Hour) }},
		{"Operator.Unban", "unban", func() (bool, error) { return operate.New(limiter).Unban(bob, rule.Name, subject) }},
		{"Overrides.Set", "override", func() (bool, error) { return true, overrides.Set(bob, subject, per(core.PerHour(7))) }},
		{"Operator.ImportMarks", "override", func() (bool, error) {
			set, _, err := operate.New(limiter).ImportMarks(bob, []operate.Mark{{Rule: rule.Name, Subject: subject, Kind: "blocked"}})
			return set == 1, err
		}},
		{"Overrides.Remove", "override removed", func() (bool, error) { return overrides.Remove(bob, subject) }},
		{"Counter.Reset", "reset", func() (bool, error) { return counter.Reset(bob, subject) }},
		{"Pacer.Reset", "reset", func() (bool, error) { return pacer.Reset(bob, subject) }},
		{"Log.Reset", "reset", func() (bool, error) { return log.Reset(bob, subject) }},
		{"Slots.Reset", "reset", func() (bool, error) { return slots.Reset(bob, subject) }},
	}
	if err := use(); err != nil {
		t.Fatal(err)
	}
	tried := strings.Fields(noActs)
	for _, act := range acts {
		tried = append(tried, act.method)
		before := len(auditOf(t, limiter))
		if changed, err := act.do(); !changed || err != nil {
			t.Errorf("%s: %v, %v", act.method, changed, err)
		}
		entries := auditOf(t, limiter)
		if len(entries) != before+1 {
			t.Fatalf("%s: %d entries more", act.method, len(entries)-before)
		}
		if newest := entries[before]; newest.Act != act.act || newest.Subject != subject || newest.Author != "bob" || newest.Note != "ticket 7" {
			t.Errorf("%s: %+v", act.method, newest)
		}
	}
	wantAllTried(t, tried, limiter, operate.New(limiter), guard, check, overrides, counter, pacer, log, slots)
}

// noActs are the methods with a context that are no acts of an operator.
const noActs = "Operator.AllBans Operator.Audit Operator.BanOf Operator.Bans Operator.CheckMark Operator.Doctor Operator.Explain Operator.ExportMarks Operator.Inspect Operator.InspectPart " +
	"Operator.KnownBans Operator.Losses Operator.PrefixUnused Operator.RecordAttempt Operator.Top Limiter.Ping Limiter.Refund Guard.OwnLimits Bill.Add Bill.Cancel Bill.Settle Check.WithEstimates " +
	"Overrides.Get Overrides.List Counter.Allow Counter.AllowN Counter.AllowUpTo Counter.Charge Counter.Open Counter.Peek Log.Allow Log.AllowN Log.Records " +
	"Pacer.Acquire Pacer.Peek Pacer.Reserve Pacer.TryAcquire Slots.Hold Slots.Peek"

// wantAllTried checks that every method with a context was tried.
func wantAllTried(t *testing.T, tried []string, of ...any) {
	t.Helper()
	for _, made := range of {
		for method := range reflect.TypeOf(made).Methods() {
			name := reflect.Indirect(reflect.ValueOf(made)).Type().Name() + "." + method.Name
			if method.Type.NumIn() > 1 && method.Type.In(1) == reflect.TypeFor[context.Context]() && !slices.Contains(tried, name) {
				t.Errorf("%s may be an act of an operator, and is not tried here", name)
			}
		}
	}
}
