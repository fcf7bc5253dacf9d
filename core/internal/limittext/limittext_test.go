package limittext_test

import (
	"errors"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
	"github.com/accesslimit/accesslimit/core/internal/limittext"
)

// termsOf returns limits by an algorithm.
func termsOf(kind algorithm.Kind) (all []limittext.Terms) {
	of := kind.OfLimit()
	for _, window := range []time.Duration{time.Second, time.Minute, time.Hour, 90 * time.Minute, 30 * time.Second, 1500 * time.Millisecond} {
		t := limittext.Terms{Max: 7, Window: window, Kind: kind}
		if of.Burst {
			t.Burst = 9
		}
		all = append(all, t)
	}
	if of.Calendar {
		all = append(all, limittext.Terms{Max: 7, Unit: limittext.Days, Zone: "UTC", Kind: kind},
			limittext.Terms{Max: 7, Unit: limittext.Months, Zone: "Europe/Berlin", Kind: kind})
	}
	return all
}

// The text of every algorithm's limits is read back, and a schema accepts it with any spaces.
func TestTextOfEveryAlgorithm(t *testing.T) {
	pattern, seen := regexp.MustCompile(limittext.Pattern()), make(map[string]bool)
	for _, kind := range algorithm.Kinds() {
		if !kind.Limits() {
			continue
		}
		for _, terms := range termsOf(kind) {
			text := terms.String()
			if got, err := limittext.Parse(text); got != terms || err != nil {
				t.Errorf("%q of %+v is read as %+v: %v", text, terms, got, err)
			}
			if wide := " " + strings.ReplaceAll(text, " ", "  ") + " "; !pattern.MatchString(text) || !pattern.MatchString(wide) {
				t.Errorf("%v does not match %q", pattern, wide)
			}
			if seen[text] || terms.Phrase() == "" || terms.SpanName() == "" {
				t.Errorf("%q: phrase %q, span %q, or two limits have the text", text, terms.Phrase(), terms.SpanName())
			}
			seen[text] = true
		}
	}
	if text := limittext.Unlimited.String(); pattern.MatchString(text) || !regexp.MustCompile(limittext.UnlimitedPattern()).MatchString(text) {
		t.Errorf("%q matches the wrong pattern", text)
	}
}

// The examples in messages are limits.
func TestExamples(t *testing.T) {
	for _, text := range append(strings.Split(strings.Replace(limittext.RuleForms, ", or ", ", ", 1), ", "), limittext.Example(func(p *algorithm.Properties) bool { return p.Burst })) {
		if _, err := limittext.Parse(text); err != nil {
			t.Errorf("%q: %v", text, err)
		}
	}
	for _, text := range []string{"", "5", "at once", "5 at", "3 at once lost", "3 at once lost after", "5/s burst", "5/s log log", "lots"} {
		if _, err := limittext.Parse(text); err == nil {
			t.Errorf("%q is read", text)
		}
	}
	if _, err := limittext.Parse("lots of calls"); !errors.Is(err, limittext.ErrForm) {
		t.Error(err)
	}
	leased := func(p *algorithm.Properties) bool { return p.Leases }
	if got := limittext.Kinds(leased) + ", " + limittext.Phrases(leased); got != "SlidingWindow or FixedWindow, a sliding window or a fixed window" {
		t.Error(got)
	}
}
