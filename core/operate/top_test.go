package operate_test

import (
	"slices"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/operate"
)

var spans = []time.Duration{time.Minute, 10 * time.Minute, time.Hour}

// topOf returns the lists of a rule without the time. It first adds what limiters noted so far.
func topOf(t *testing.T, rule string, limiters ...*core.Limiter) operate.TopList {
	t.Helper()
	for _, l := range limiters {
		flushTop(l)
	}
	list, err := operate.New(limiters[0]).Top(background, rule, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	list.Since = time.Time{}
	return list
}

func wantTop(t *testing.T, got, want operate.TopList) {
	t.Helper()
	if !slices.Equal(got.Refused, want.Refused) || !slices.Equal(got.Near, want.Near) {
		t.Errorf("the lists are\n%v, want\n%v", got, want)
	}
}

// Refusals by rules and handles, and calls near a limit, are in the list of their rule and in that
// of all, for every span.
func TestTop(t *testing.T) {
	onEveryDeployment(t, func(t *testing.T, options core.Options) {
		limiter := newLimiter(t, options)
		guard := newGuard(t, limiter, core.Rule{Name: "rule", Limit: core.PerHour(10), Key: bySubject})
		counter := limiter.MustCounter("handle", core.PerHour(5), core.PerDay(100))
		for subject, calls := range map[string]int{"a": 40, "b": 15, "c": 9, "d": 7} {
			for range calls {
				guard.Check(about(subject))
				if _, err := counter.Allow(background, subject); err != nil {
					t.Fatal(err)
				}
				if _, err := counter.Peek(background, subject); err != nil { // does not count
					t.Fatal(err)
				}
			}
		}
		ofRule := operate.TopList{
			Refused: []operate.TopEntry{{Rule: "rule", Subject: "a", Refused: 30}, {Rule: "rule", Subject: "b", Refused: 5}},
			Near:    []operate.TopEntry{{Rule: "rule", Subject: "a", Used: 1}, {Rule: "rule", Subject: "b", Used: 1}, {Rule: "rule", Subject: "c", Used: 0.9}},
		}
		ofHandle := operate.TopList{
			Refused: []operate.TopEntry{
				{Rule: "handle", Subject: "a", Refused: 35}, {Rule: "handle", Subject: "b", Refused: 10},
				{Rule: "handle", Subject: "c", Refused: 4}, {Rule: "handle", Subject: "d", Refused: 2},
			},
			Near: []operate.TopEntry{
				{Rule: "handle", Subject: "a", Used: 1}, {Rule: "handle", Subject: "b", Used: 1},
				{Rule: "handle", Subject: "c", Used: 1}, {Rule: "handle", Subject: "d", Used: 1},
			},
		}
		ofAll := operate.TopList{
			Refused: slices.Insert(slices.Clone(ofHandle.Refused), 1, ofRule.Refused[0]),
			Near:    append(slices.Clone(ofHandle.Near), ofRule.Near...),
		}
		ofAll.Refused = slices.Insert(ofAll.Refused, 3, ofRule.Refused[1])
		for rule, want := range map[string]operate.TopList{"rule": ofRule, "handle": ofHandle, "": ofAll, "unknown": {}} {
			wantTop(t, topOf(t, rule, limiter), want)
			for _, span := range spans {
				got, err := operate.New(limiter).Top(background, rule, span)
				if err != nil {
					t.Fatal(err)
				}
				wantTop(t, got, want)
				if age := time.Since(got.Since); age < span || age > span+2*time.Minute || got.Since.Second() != 0 {
					t.Errorf("the list of %v begins at %v", span, got.Since)
				}
			}
		}
	})
}

// Every refusal by a limit counts, for whatever reason and from wherever the answer came. Other
// refusals do not count.
func TestTopCountsRefusalsByLimits(t *testing.T) {
	onBothEngines(t, func(t *testing.T, options core.Options) {
		limiter := newLimiter(t, options)
		rule := func(name string) core.Rule { return core.Rule{Name: name, Limit: core.PerHour(100), Key: bySubject} }
		one := func(name string) core.Rule { r := rule(name); r.Limit = core.PerHour(1); return r }
		dry, soft, banned, blocked, also, costly := one("dry"), one("soft"), one("banned"), rule("blocked"), rule("also"), rule("costly")
		dry.Mode, soft.Mode, banned.Ban = core.DryRun, core.Soft, core.Ban{After: 1, For: time.Hour}
		also.Also, costly.Cost = []core.Limit{core.PerDay(1)}, func(core.Request) int { return 101 }
		rules := []core.Rule{one("limit"), dry, soft, banned, blocked, also, costly}
		guards := make([]*core.Guard, len(rules))
		for i, r := range rules {
			guards[i] = newGuard(t, limiter, r)
		}
		setOverride(t, limiter, "blocked", "a", operate.Override{Blocked: true})
		for range 11 { // in Redis, most refusals are remembered
			for _, guard := range guards {
				guard.Check(about("a"))
			}
		}
		awaitDryRuns(t, limiter)
		want := []operate.TopEntry{{Rule: "blocked", Subject: "a", Refused: 11}}
		for _, name := range []string{"also", "banned", "dry", "limit", "soft"} {
			want = append(want, operate.TopEntry{Rule: name, Subject: "a", Refused: 10})
		}
		if got := topOf(t, "", limiter).Refused; !slices.Equal(got, want) {
			t.Errorf("the list is %+v, want %+v", got, want)
		}
	})
}

// In a call by several rules, each has its own share of a limit.
func TestTopOfSeveralRules(t *testing.T) {
	limiter := newLimiter(t, core.Options{})
	rule := func(name string, most int) core.Rule {
		return core.Rule{Name: name, Limit: core.PerHour(most), Key: bySubject}
	}
	guard := newGuard(t, limiter, rule("wide", 10), rule("tight", 9))
	for range 9 {
		guard.Check(about("a"))
	}
	want := []operate.TopEntry{{Rule: "tight", Subject: "a", Used: 1}, {Rule: "wide", Subject: "a", Used: 0.9}}
	if got := topOf(t, "", limiter).Near; !slices.Equal(got, want) {
		t.Errorf("the list is %+v, want %+v", got, want)
	}
}

// Subjects are opaque: every byte counts, none is interpreted, and a long one is cut.
func TestTopOfSubjectsOfEveryByte(t *testing.T) {
	onEveryDeployment(t, func(t *testing.T, options core.Options) {
		limiter := newLimiter(t, options)
		name := "}{: 1:\x00\xff"
		counter := limiter.MustCounter(name, core.PerHour(1))
		want := make(map[string]bool)
		for b := range 100 {
			want[string([]byte{byte(b), ':', byte(255 - b), byte(b), '1', ':'})] = true
		}
		delete(want, "\x00:\xff\x001:")
		want[strings.Repeat("\x80", 255)] = true
		for subject := range want {
			for range 2 {
				if _, err := counter.Allow(background, subject); err != nil {
					t.Fatal(err)
				}
			}
		}
		for _, rule := range []string{name, ""} {
			list := topOf(t, rule, limiter)
			if len(list.Refused) != 100 || len(list.Near) != 100 {
				t.Fatalf("%q has %d and %d entries, want 100", rule, len(list.Refused), len(list.Near))
			}
			for _, e := range append(list.Refused, list.Near...) {
				if !want[e.Subject] || e.Rule != "}{: 1:\x00\uFFFD" {
					t.Errorf("%q lists %q of %q", rule, e.Subject, e.Rule)
				}
			}
		}
	})
}

// Frameworks lend strings for one call.
func TestTopKeepsCopies(t *testing.T) {
	limiter := newLimiter(t, core.Options{})
	buffer := []byte("user:a")
	lent := unsafe.String(&buffer[0], len(buffer))
	guard := newGuard(t, limiter, core.Rule{Name: "rule", Limit: core.PerHour(1), Key: func(core.Request) (string, error) { return lent, nil }})
	counter := limiter.MustCounter("handle", core.PerHour(1))
	for range 2 {
		guard.Check(about("anybody"))
		_, _ = counter.Allow(background, lent)
	}
	copy(buffer, "xxxxxx")
	for _, list := range [][]operate.TopEntry{topOf(t, "", limiter).Refused, topOf(t, "", limiter).Near} {
		for _, e := range list {
			if e.Subject != "user:a" || len(list) != 2 {
				t.Errorf("the list is %+v", list)
			}
		}
	}
}

// A table for a terminal must not let callers' bytes control it, and has each subject as it can be typed.
func TestTopAsText(t *testing.T) {
	list := operate.TopList{
		Since:   time.Date(2026, 11, 22, 14, 3, 0, 0, time.UTC),
		Refused: []operate.TopEntry{{Rule: "reply", Subject: "user:alice", Refused: 1234}, {Rule: "long name", Subject: "user:\x1b[31m\n", Refused: 7}},
		Near:    []operate.TopEntry{{Rule: "reply", Subject: "user:bob", Used: 0.979}, {Rule: "reply", Subject: "query:a=b", Used: 0.9}},
	}
	const want = `refused most since 14:03:
    1234  reply      user:alice
       7  long name  "user:\x1b[31m\n"
nearest to their limits since 14:03:
    97 %  reply  user:bob
    90 %  reply  "query:a=b"
`
	if got := list.String(); got != want {
		t.Errorf("got\n%s, want\n%s", got, want)
	}
	if got := (operate.TopList{}).String(); strings.Count(got, "nobody") != 2 {
		t.Errorf("got\n%s", got)
	}
}
