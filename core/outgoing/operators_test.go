package outgoing_test

import (
	"context"
	"maps"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/operate"
	"github.com/accesslimit/accesslimit/core/outgoing"
	"github.com/accesslimit/accesslimit/internal/redistest"
)

const carol, dave = "api.example.com:carol", "api.example.com:dave"

// Operators can tell pauses from bans, also in a process that has no such rule, and end them.
func TestOperatorsSeeAndEndPauses(t *testing.T) {
	onEveryDeployment(t, func(t *testing.T, options core.Options) {
		limiter := newLimiter(t, options)
		turns, ops := newTurns(t, limiter, outgoing.Rule{}), operate.New(limiter)
		call(t, turns, alice, refused(time.Hour))
		call(t, turns, bob, outgoing.Answer{Wait: time.Hour})
		want := map[string]string{alice: "paused by the server", bob: "paused by the server", carol: "by hand carol@ops ticket 7"}
		by := operate.WithActor(background, "carol@ops", "ticket 7")
		if changed, err := ops.Ban(by, "api", carol, time.Hour); !changed || err != nil {
			t.Fatal(changed, err)
		}
		if changed, err := ops.Ban(background, "api", carol, time.Minute); changed || err != nil {
			t.Errorf("a shorter ban: %v, %v", changed, err)
		}
		wantCauses(t, ops, want)
		if options.Redis != nil {
			elsewhere := operate.New(newLimiter(t, options))
			if changed, err := elsewhere.Ban(background, "api", dave, time.Hour); !changed || err != nil {
				t.Fatal(changed, err)
			}
			want[dave] = "by hand"
			wantCauses(t, elsewhere, want)
			if all, _, err := ops.AllBans(background, "", 10); len(all) != 1 || err != nil { // that of dave, because a rule of the name may be for calls that come in
				t.Errorf("%v, %v", all, err)
			}
		}
		report, err := ops.Inspect(background, alice)
		if text := report.String(); err != nil || report.Rules[0].Reason != core.Banned || !strings.Contains(text, "\n    paused for 1") || !strings.Contains(text, "pauses in a row after refusals: 1") || !report.Rules[0].Outgoing {
			t.Errorf("%s, %v", text, err)
		}
		for key := range want {
			if wait := wantWait(t, turns, key, 0); !wait.Paused {
				t.Errorf("%s: %v", key, wait)
			}
			if changed, err := ops.Unban(background, "api", key); !changed || err != nil {
				t.Errorf("Unban of %s: %v, %v", key, changed, err)
			}
			call(t, turns, key, outgoing.Answer{})
		}
	})
}

// wantCauses checks what the list of bans says about those of the rule api.
func wantCauses(t *testing.T, ops *operate.Operator, want map[string]string) {
	t.Helper()
	eventually(t, "the bans are listed", func() bool {
		page, _, err := ops.Bans(background, "api", "", 10)
		return err == nil && len(page) == len(want)
	})
	page, _, _ := ops.Bans(background, "api", "", 10)
	got := make(map[string]string)
	for _, ban := range page {
		got[ban.Subject] = strings.TrimSuffix(ban.Cause+" "+ban.Author+" "+ban.Note, "  ")
	}
	if !maps.Equal(got, want) {
		t.Errorf("the causes are %v, want %v", got, want)
	}
}

// A process that has no rule of a name lists its bans and its pauses, each subject once, however many it
// asks for. One that is listed, but not in force, ends no page too early.
func TestAProcessWithoutTheRuleListsBoth(t *testing.T) {
	options := core.Options{Redis: redistest.Start(t).Client(t)}
	incoming, goingOut := newLimiter(t, options), newLimiter(t, options)
	incoming.MustGuard(core.Rule{Name: "api", Limit: plenty})
	newTurns(t, goingOut, outgoing.Rule{})
	for by, subjects := range map[*core.Limiter]string{incoming: "ade", goingOut: "bcdf"} {
		for subject := range strings.SplitSeq(subjects, "") {
			if changed, err := operate.New(by).Ban(background, "api", subject, time.Hour); !changed || err != nil {
				t.Fatal(changed, err)
			}
		}
	}
	if n := options.Redis.Del(background, "accesslimit:{b}:api:ps1:0").Val(); n != 1 {
		t.Fatal("there is no such pause")
	}
	elsewhere := operate.New(newLimiter(t, options))
	for n := range 6 {
		got := ""
		for after, more := "", true; more; more = after != "" {
			page, next, err := elsewhere.Bans(background, "api", after, n+1)
			if err != nil || len(page) > n+1 {
				t.Fatal(page, err)
			}
			for _, ban := range page {
				got += ban.Subject
			}
			after = next
		}
		if got != "acdef" {
			t.Errorf("in pages of %d: %s", n+1, got)
		}
	}
}

// Turns that calls wait for are a debt of the bucket.
func TestOperatorsSeeCallsThatWait(t *testing.T) {
	limiter := newLimiter(t, core.Options{})
	turns := newTurns(t, limiter, outgoing.Rule{Limit: core.PerHour(120).Bucket(1), MaxWait: time.Hour})
	call(t, turns, alice, outgoing.Answer{})
	ctx, cancel := context.WithCancel(background)
	defer cancel()
	for range 2 {
		go func() { _, _ = turns.Take(ctx, alice) }()
	}
	eventually(t, "both wait", func() bool {
		report, err := operate.New(limiter).Inspect(background, alice)
		return err == nil && report.Rules[0].Limits[0].Debt == 2 && limiter.Stats().Outgoing[0].Waiting == 2
	})
	cancel()
	eventually(t, "nobody waits", func() bool { return limiter.Stats().Outgoing[0].Waiting == 0 })
}

// OnDecision receives each call once, and refusals by the server. If it panics, the turn is free.
func TestCallsThatGoOutAreReported(t *testing.T) {
	var got []core.Event
	panics := false
	limiter := newLimiter(t, core.Options{OnDecision: func(_ context.Context, e core.Event) {
		if got = append(got, e); panics {
			panic("by the service")
		}
	}})
	turns := newTurns(t, limiter, outgoing.Rule{InFlight: 1})
	call(t, turns, alice, refused(time.Hour))
	wantWait(t, turns, alice, 0)
	of := core.Decision{Rule: "api", Key: alice, Limit: plenty}
	sent, notSent := of, of
	sent.Allowed, sent.Reason, sent.Source = true, core.Allowed, core.FromMemory
	notSent.Reason, notSent.Source, notSent.RetryAfter = core.Banned, core.FromMemory, got[len(got)-1].Decision.RetryAfter
	of.RetryAfter = time.Hour
	want := []core.Event{{Outgoing: true, Decision: sent}, {Outgoing: true, ByServer: true, Decision: of}, {Outgoing: true, Decision: notSent}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("reported are\n%+v, want\n%+v", got, want)
	}
	panics = true
	func() {
		defer func() { _ = recover() }()
		_, _ = turns.Take(background, bob)
		t.Error("OnDecision did not panic")
	}()
	panics = false
	call(t, turns, bob, outgoing.Answer{})
}

// A rule for calls that go out is among the attached rules, and decides no call that comes in.
func TestCallsThatComeInAreOthers(t *testing.T) {
	limiter := newLimiter(t, core.Options{})
	turns := newTurns(t, limiter, outgoing.Rule{InFlight: 3, Limit: core.PerHour(1000).Bucket(1000)})
	call(t, turns, alice, outgoing.Answer{})
	if all := limiter.Stats().Outgoing; len(all) != 1 || all[0].Rule != "api" || all[0].Sent != 1 || all[0].WaitTime != 0 {
		t.Errorf("the counts are %+v", all)
	}
	ops := operate.New(limiter)
	report, err := ops.Explain(background, operate.Call{Method: "GET", Path: "/orders", User: "alice"})
	if err != nil || strings.Contains(report.String(), "api") {
		t.Errorf("%v\n%v", err, report)
	}
	if report, err := ops.Inspect(background, alice); err != nil || !strings.Contains(report.String(), "1 used, 999 left") {
		t.Errorf("%v\n%v", err, report)
	}
	runtime.GC() // the list keeps no rule by itself, but turns keep theirs on it
	rules, _, err := ops.Rules()
	if err != nil || len(rules) != 1 || rules[0].Rule.Name != "api" || len(rules[0].Rule.Also) != 1 || !rules[0].Outgoing || rules[0].CountsBy != "" {
		t.Errorf("the rules are %+v, %v", rules, err)
	}
	runtime.KeepAlive(turns)
}
