package rulefield_test

import (
	"context"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/internal/rulefield"
	"github.com/accesslimit/accesslimit/core/rulefile"
)

// plain is a rule of a file without further fields.
const plain = "name: api\nlimit: 10/h"

// examples are rules of a file with each field. Those that are wrong are so because of this field.
var examples = map[string]struct{ with, wrong string }{
	"Name":         {"name: other\nlimit: 10/h", "name: é\nlimit: 10/h"},
	"Limit":        {"name: api\nlimit: 10/m", "name: api\nlimit: 0/h"},
	"Seconds":      {"name: api\nseconds: 60", "name: api\nseconds: 0"},
	"MaxCount":     {"name: api\nseconds: 60\nmax_count: 3", plain + "\nmax_count: 3"},
	"Also":         {plain + "\nalso: [20/24h]", plain + "\nalso: [9/h]"},
	"NeedLogin":    {plain + "\nneed_login: true", plain + "\nneed_login: 1"},
	"Key":          {plain + "\nkey: global", plain + "\nkey: nobody"},
	"Cost":         {plain + "\ncost: f", plain + "\ncost: nobody"},
	"Estimate":     {plain + "\nestimate: f", plain + "\ncost: f\nestimate: f"},
	"Bill":         {plain + "\nestimate: f\nbill: {max_debt: 2.5}", plain + "\nestimate: f\nbill: {max_debt: 11}"},
	"Plans":        {plain + "\nplan: f\nplans: {free: 2/m}", plain + "\nplan: f\nplans: {free: 0/h}"},
	"Plan":         {plain + "\nplan: f\nplans: {free: 2/m}", plain + "\nplan: nobody\nplans: {free: 2/m}"},
	"LimitFor":     {plain + "\nlimit_for: f", plain + "\nlimit_for: nobody"},
	"Count":        {plain + "\ncount: f", plain + "\ncount: nobody"},
	"Note":         {"name: api\nlimit: 10/h log\nnote: f", plain + "\nnote: f"},
	"Ban":          {plain + "\nban: {after: 3, for: 1h, max: 24h}", plain + "\nban: {after: 3}"},
	"Mode":         {plain + "\nmode: dry_run", plain + "\nmode: soft\nlease: 5"},
	"Warn":         {plain + "\nwarn: [0.8, 1]", plain + "\nwarn: [1, 0.8]"},
	"Skip":         {plain + "\nskip: f", plain + "\nskip: nobody"},
	"Paths":        {plain + "\npaths: [/a]", plain + "\npaths: [a]"},
	"Except":       {plain + "\nexcept: [/a]", plain + "\nexcept: [a]"},
	"Methods":      {plain + "\nmethods: [GET]", plain + "\nmethods: [G T]"},
	"Lease":        {plain + "\nlease: 5", plain + "\nlease: 11"},
	"OnStoreError": {plain + "\non_store_error: fail_closed", plain + "\non_store_error: count_locally 2"},
	"Message":      {plain + "\nmessage: Slow_down.", plain + "\nmessage: 1"},
}

// Each field of a rule is in the table, in files with rules and their schema, in what a change does,
// in what is shown of a rule, and in the documentation.
func TestEveryFieldIsEverywhere(t *testing.T) {
	schema, godoc, manual := propertiesOfARule(t), read(t, "../../rule.go"), read(t, "../../RULEFILE.md")
	of := reflect.TypeFor[core.Rule]()
	if of.NumField() != len(rulefield.Table) || len(examples) != len(rulefield.Table) {
		t.Errorf("a rule has %d fields, the table %d, and the examples %d", of.NumField(), len(rulefield.Table), len(examples))
	}
	for field := range of.Fields() {
		t.Run(field.Name, func(t *testing.T) {
			at := slices.IndexFunc(rulefield.Table, func(f rulefield.Field) bool { return f.Name == field.Name })
			if at < 0 {
				t.Fatal("is not in the table")
			}
			f := &rulefield.Table[at]
			wantFunctions(t, f, field.Type)
			wantInFiles(t, f)
			wantChange(t, f)
			wantShown(t, f)
			if schema[f.File()].Description != f.Doc || f.Doc == "" {
				t.Errorf("the schema says %q of %s: run go generate", schema[f.File()].Description, f.File())
			}
			if !regexp.MustCompile(`\n\t// ` + f.Name + `\b`).MatchString(godoc) {
				t.Error("has no comment in Rule")
			}
			rowless := f.Counters == rulefield.Keep || f.Form == rulefield.Limit || f.Form == rulefield.Number
			if _, table, _ := strings.Cut(manual, "What becomes of the counters"); !rowless && !strings.Contains(table, "`"+f.File()+"`") {
				t.Error("RULEFILE.md does not say what a change does to the counters")
			}
		})
	}
}

// Relations and options are those of fields that there are, and each relation has a code of its own.
func TestRelationsOfFields(t *testing.T) {
	rule, options, relations := reflect.TypeFor[core.Rule](), reflect.TypeFor[core.Options](), 0
	for i := range rulefield.Table {
		f := &rulefield.Table[i]
		for _, of := range [][]rulefield.Relation{f.Needs, f.Excludes} {
			for j := range of {
				relations++
				r := &of[j]
				if _, ok := rule.FieldByName(r.Field); !ok || rulefield.RelationOf(r.Code) != r || strings.ContainsAny(r.InGo()+r.InFile(), "{}") {
					t.Errorf("%s: %+v, %q, %q", f.Name, r, r.InGo(), r.InFile())
				}
			}
		}
		if _, ok := options.FieldByName(f.Option); f.Option != "" && (!ok || f.Purpose == "") {
			t.Errorf("%s needs Options.%s, %s", f.Name, f.Option, f.Purpose)
		}
	}
	if relations < 10 {
		t.Errorf("%d relations only", relations)
	}
}

// A number is a mistake outside of its bounds, a field beside one that it excludes, and a field without
// one that it needs. Nothing is wrong with fields that are not set.
func TestCheckByTheTable(t *testing.T) {
	for codes, rule := range map[string]core.Rule{
		"":                                 {Seconds: 60, Plans: map[string]core.Limit{}, Warn: []float64{}},
		"seconds_range":                    {Seconds: -1},
		"max_count_range lease_range":      {MaxCount: -1, Lease: -1},
		"limit_and_seconds":                {Limit: core.PerHour(1), Seconds: 1},
		"soft_without_name soft_and_lease": {Mode: core.Soft, Lease: 1},
		"soft_and_fail_closed":             {Name: "n", Mode: core.Soft, OnStoreError: core.FailClosed},
	} {
		var found []string
		for _, m := range rulefield.Check(&rule) {
			found = append(found, m.Code)
		}
		if got := strings.Join(found, " "); got != codes {
			t.Errorf("%+v: %q, want %q", rule, got, codes)
		}
	}
	found := rulefield.CheckOptions(&core.Rule{NeedLogin: true, Warn: []float64{1}}, &core.Options{OnThreshold: func(context.Context, core.Threshold) {}})
	if len(found) != 1 || found[0].Code != "no_identify" || found[0].Field != "NeedLogin" || found[0].Value != true {
		t.Errorf("%+v", found)
	}
}

// wantFunctions fails unless Functions has functions of the field's type.
func wantFunctions(t *testing.T, f *rulefield.Field, of reflect.Type) {
	t.Helper()
	registered, ok := reflect.TypeFor[rulefile.Functions]().FieldByName(f.Functions)
	if ok != (of.Kind() == reflect.Func) || ok && registered.Type.Elem() != of {
		t.Errorf("Functions.%s are %v, want %v", f.Functions, registered.Type, of)
	}
}

// wantInFiles fails unless a file can have the field, and a wrong value is refused with its name.
func wantInFiles(t *testing.T, f *rulefield.Field) {
	t.Helper()
	set := load(t, examples[f.Name].with)
	rule, _ := set.Rule(set.Names()[0])
	if reflect.ValueOf(rule).FieldByName(f.Name).IsZero() {
		t.Errorf("is not read from %q", examples[f.Name].with)
	}
	wantOwnCopy(t, set, f)
	_, err := rulefile.Load(newLimiter(t), functions, file(t, examples[f.Name].wrong))
	if err == nil || !regexp.MustCompile(`rule "(api|é)": `+f.File()+`\b`).MatchString(err.Error()) {
		t.Errorf("%q gives %v, want an error that names %s", examples[f.Name].wrong, err, f.File())
	}
}

// wantOwnCopy fails if somebody who changes a rule that a Set returned changes the Set.
func wantOwnCopy(t *testing.T, set *rulefile.Set, f *rulefield.Field) {
	t.Helper()
	field := func() reflect.Value {
		rule, _ := set.Rule(set.Names()[0])
		return reflect.ValueOf(&rule).Elem().FieldByName(f.Name)
	}
	want := fmt.Sprint(field())
	switch changed := field(); changed.Kind() {
	case reflect.Slice:
		changed.Index(0).SetZero()
	case reflect.Map:
		changed.Clear()
	}
	if got := fmt.Sprint(field()); got != want {
		t.Errorf("has become %s, from %s", got, want)
	}
}

// wantChange fails unless Diff says of the field, once, what the table says of the counters. For both
// ways to give a limit, it says so of the field limit.
func wantChange(t *testing.T, f *rulefield.Field) {
	t.Helper()
	of, kept := f.File(), f.Counters == rulefield.Keep || f.Counters == rulefield.ByResult
	switch f.Form {
	case rulefield.Name:
		return // it is another rule
	case rulefield.Number:
		if !kept {
			of = "limit"
		}
	case rulefield.Plans:
		of = "plans.free"
	}
	changes := load(t, plain).Diff(load(t, examples[f.Name].with))
	own := slices.DeleteFunc(slices.Clone(changes), func(c rulefile.Change) bool { return c.Field != of })
	if len(own) != 1 || own[0].StartEmpty == kept {
		t.Errorf("the changes are %v", changes)
	}
}

// wantShown fails unless what is shown of a rule differs with the field, and has its words.
func wantShown(t *testing.T, f *rulefield.Field) {
	t.Helper()
	words, _, _ := strings.Cut(f.Words, "%")
	without, with := onPage(t, plain), onPage(t, examples[f.Name].with)
	if without == with || !strings.Contains(with, words) {
		t.Errorf("the page shows %s, and without the field %s", with, without)
	}
	if report := explained(t, examples[f.Name].with); !strings.Contains(report, words) {
		t.Errorf("Explain does not say %q:\n%s", words, report)
	}
}
