package rulefile

import (
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/internal/algorithm"
	"github.com/accesslimit/accesslimit/core/internal/rulefield"
)

// goNames are the names that fields have in Go and nowhere in a file.
var goNames = func() *regexp.Regexp {
	var names []string
	for _, of := range []reflect.Type{reflect.TypeFor[core.Rule](), reflect.TypeFor[core.Ban](), reflect.TypeFor[core.Limit]()} {
		for field := range of.Fields() {
			names = append(names, field.Name)
		}
	}
	for _, kind := range algorithm.Kinds() {
		names = append(names, kind.Properties().Name)
	}
	return regexp.MustCompile(`\b(` + strings.Join(append(names, "FailClosed", "Log"), "|") + `)\b`)
}()

// Messages about files have no words of Go.
func TestSentencesOfFiles(t *testing.T) {
	function := func(core.Request) (string, error) { return "", nil }
	bucket, none := core.PerSecond(5).Bucket(0), core.Ban{After: -1, For: -1}
	seen := make(map[string]bool)
	for _, rule := range []core.Rule{
		{}, {Seconds: -1}, {Seconds: 1, Limit: bucket}, {MaxCount: 1, Limit: bucket},
		{Limit: bucket, Lease: 1, Overrides: true, Warn: []float64{1, 0.5}, Ban: none, OnStoreError: core.CountLocally(2)},
		{Limit: bucket, Note: func(core.Request) string { return "" }, Also: []core.Limit{bucket}, Plan: function, Lease: 10},
		{Limit: bucket, Plans: map[string]core.Limit{"a": core.PerHour(1)}, Overrides: true, Ban: core.Ban{After: 1, ByHand: true}},
		{Limit: core.PerDay(100_000_000).Bucket(0), OnStoreError: core.CountLocally(1. / 3), Warn: []float64{1, 2, 3, 4, 5}},
		{Limit: bucket, Ban: core.Ban{After: 1, For: time.Hour, Max: 1}, Plan: function, Plans: map[string]core.Limit{"a": bucket}, LimitFor: func(core.Request) (core.Limit, error) { return bucket, nil }},
		{Limit: bucket, Mode: core.Soft, Ban: none, Lease: 1, OnStoreError: core.FailClosed, Paths: []string{"x"}, Methods: []string{"get"}, Message: "\xff"},
	} {
		rule.Name = "n"
		for _, wrong := range rule.Check(nil) {
			seen[wrong.Code] = true
			if name := goNames.FindString(sentence(wrong)); name != "" {
				t.Errorf("%s: %q has the word %s", wrong.Code, sentence(wrong), name)
			}
		}
	}
	for _, f := range rulefield.Table {
		for _, r := range append(f.Needs, f.Excludes...) {
			if !seen[r.Code] && r.Field != "Name" { // rules of files have one
				t.Errorf("no rule makes the mistake %s", r.Code)
			}
		}
	}
	if len(seen) < 25 {
		t.Errorf("%d mistakes only", len(seen))
	}
}

// So has the message about a name that stands for two things on a Limiter.
func TestSentencesOfNames(t *testing.T) {
	hourly := core.Rule{Name: "api", Limit: core.PerHour(5)}
	soft, overridable := hourly, hourly
	soft.Mode, overridable.Overrides = core.Soft, true
	for _, rule := range []core.Rule{hourly, soft, overridable} {
		limiter := newLimiter(t)
		limiter.MustGuard(rule)
		for _, other := range []string{"mode: soft", "overrides: true", "also: [9/24h]"} {
			set, err := Load(limiter, Functions{}, write(t, "limits.yaml", "version: 1\nrules: [{name: api, limit: 5/h, "+other+"}]"))
			if err != nil {
				t.Fatal(err)
			}
			_, err = set.Guard("api")
			if taken := rule.Mode == core.Soft && other == "mode: soft" || rule.Overrides && other == "overrides: true"; taken != (err == nil) {
				t.Errorf("%+v and %s: %v", rule, other, err)
			}
			if err != nil && goNames.MatchString(err.Error()) {
				t.Error(err)
			}
		}
	}
}

func TestFieldsOfFiles(t *testing.T) {
	for in, want := range map[string]fieldPath{
		"MaxCount":       {"max_count", "", -1},
		"Limit.Max":      {"limit", "", -1},
		"Ban.ByHand":     {"ban", "by_hand", -1},
		"Also[2]":        {"also", "", 2},
		`Plans["a.\"b"]`: {"plans", `a."b`, -1},
		`Plans["3"]`:     {"plans", "3", -1},
	} {
		if got := fieldOf(in); got != want {
			t.Errorf("%s is %+v, want %+v", in, got, want)
		}
	}
}
