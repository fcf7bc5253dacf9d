package core_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/accesslimit/accesslimit/core"
)

var spans = []time.Duration{time.Minute, 10 * time.Minute, time.Hour}

// topOf returns the lists of a rule without the time. It first adds what limiters noted so far.
func topOf(t *testing.T, rule string, limiters ...*core.Limiter) core.TopList {
	t.Helper()
	for _, l := range limiters {
		core.FlushTop(l)
	}
	list, err := limiters[0].Top(background, rule, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	list.Since = time.Time{}
	return list
}

func wantTop(t *testing.T, got, want core.TopList) {
	t.Helper()
	if !slices.Equal(got.Refused, want.Refused) || !slices.Equal(got.Near, want.Near) {
		t.Errorf("the lists are\n%v, want\n%v", got, want)
	}
}

// bySubject is a key function that takes the subject from a value of the call.
var bySubject core.KeyFunc = func(r core.Request) (string, error) { return r.Value("subject").(string), nil }

func about(subject string) *fakeView {
	v := newView("GET", "/")
	v.values["subject"] = subject
	return v
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
		ofRule := core.TopList{
			Refused: []core.TopEntry{{Rule: "rule", Subject: "a", Refused: 30}, {Rule: "rule", Subject: "b", Refused: 5}},
			Near:    []core.TopEntry{{Rule: "rule", Subject: "a", Used: 1}, {Rule: "rule", Subject: "b", Used: 1}, {Rule: "rule", Subject: "c", Used: 0.9}},
		}
		ofHandle := core.TopList{
			Refused: []core.TopEntry{
				{Rule: "handle", Subject: "a", Refused: 35}, {Rule: "handle", Subject: "b", Refused: 10},
				{Rule: "handle", Subject: "c", Refused: 4}, {Rule: "handle", Subject: "d", Refused: 2},
			},
			Near: []core.TopEntry{
				{Rule: "handle", Subject: "a", Used: 1}, {Rule: "handle", Subject: "b", Used: 1},
				{Rule: "handle", Subject: "c", Used: 1}, {Rule: "handle", Subject: "d", Used: 1},
			},
		}
		ofAll := core.TopList{
			Refused: slices.Insert(slices.Clone(ofHandle.Refused), 1, ofRule.Refused[0]),
			Near:    append(slices.Clone(ofHandle.Near), ofRule.Near...),
		}
		ofAll.Refused = slices.Insert(ofAll.Refused, 3, ofRule.Refused[1])
		for rule, want := range map[string]core.TopList{"rule": ofRule, "handle": ofHandle, "": ofAll, "unknown": {}} {
			wantTop(t, topOf(t, rule, limiter), want)
			for _, span := range spans {
				got, err := limiter.Top(background, rule, span)
				if err != nil {
					t.Fatal(err)
				}
				wantTop(t, got, want)
				if age := time.Since(got.Since); age < span || age > span+2*time.Minute || got.Since.Second() != 0 {
					t.Errorf("the list of %v begins at %v", span, got.Since)
				}
			}
		}
		for _, span := range []time.Duration{0, -time.Minute, time.Second, 24 * time.Hour} {
			var wrong *core.RuleError
			if _, err := limiter.Top(background, "", span); !errors.As(err, &wrong) || wrong.Field != "span" {
				t.Errorf("Top of %v: %v", span, err)
			}
		}
	})
}
