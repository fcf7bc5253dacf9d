package terms_test

import (
	"errors"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
	"github.com/accesslimit/accesslimit/core/internal/terms"
)

// termsOf returns limits by an algorithm.
func termsOf(kind algorithm.Kind) (all []terms.Terms) {
	of := kind.OfLimit()
	for _, window := range []time.Duration{time.Second, time.Minute, time.Hour, 90 * time.Minute, 30 * time.Second, 1500 * time.Millisecond} {
		t := terms.Terms{Max: 7, Window: window, Kind: kind}
		if of.Burst {
			t.Burst = 9
		}
		all = append(all, t)
	}
	if of.Calendar {
		all = append(all, terms.Terms{Max: 7, Unit: terms.Days, Zone: "UTC", Kind: kind},
			terms.Terms{Max: 7, Unit: terms.Months, Zone: "Europe/Berlin", Kind: kind})
	}
	return all
}

// The text of every algorithm's limits is read back, and a schema accepts it with any spaces.
func TestTextOfEveryAlgorithm(t *testing.T) {
	pattern, seen := regexp.MustCompile(terms.Pattern()), make(map[string]bool)
	for _, kind := range algorithm.Kinds() {
		if !kind.Limits() {
			continue
		}
		for _, limit := range termsOf(kind) {
			text := limit.String()
			if got, err := terms.Parse(text); got != limit || err != nil {
				t.Errorf("%q of %+v is read as %+v: %v", text, limit, got, err)
			}
			if wide := " " + strings.ReplaceAll(text, " ", "  ") + " "; !pattern.MatchString(text) || !pattern.MatchString(wide) {
				t.Errorf("%v does not match %q", pattern, wide)
			}
			if seen[text] || limit.Phrase() == "" || limit.SpanName() == "" {
				t.Errorf("%q: phrase %q, span %q, or two limits have the text", text, limit.Phrase(), limit.SpanName())
			}
			seen[text] = true
		}
	}
	if text := terms.Unlimited.String(); pattern.MatchString(text) || !regexp.MustCompile(terms.UnlimitedPattern()).MatchString(text) {
		t.Errorf("%q matches the wrong pattern", text)
	}
}

// The examples in messages are limits.
func TestExamples(t *testing.T) {
	for _, text := range append(strings.Split(strings.Replace(terms.RuleForms, ", or ", ", ", 1), ", "), terms.Example(func(p *algorithm.Properties) bool { return p.Burst })) {
		if _, err := terms.Parse(text); err != nil {
			t.Errorf("%q: %v", text, err)
		}
	}
	for _, text := range []string{"", "5", "at once", "5 at", "3 at once lost", "3 at once lost after", "5/s burst", "5/s log log", "lots"} {
		if _, err := terms.Parse(text); err == nil {
			t.Errorf("%q is read", text)
		}
	}
	if _, err := terms.Parse("lots of calls"); !errors.Is(err, terms.ErrForm) {
		t.Error(err)
	}
	leased := func(p *algorithm.Properties) bool { return p.Leases }
	if got := terms.Kinds(leased); got != "a sliding window or a fixed window" {
		t.Error(got)
	}
}
