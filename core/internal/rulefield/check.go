package rulefield

import (
	"fmt"
	"reflect"
	"strings"
)

// Relation is a relation between a field that is set and another field.
type Relation struct {
	Field string // the other field
	// When is the text of the field's value for which the relation holds, and Is is the text of the
	// other field's value. "" stands for any value.
	When, Is string
	Code     string // of the mistake
	why      string // what is wrong, with names of fields in braces
}

// NoLimit is the mistake of a rule that has no limit at all.
var NoLimit = Relation{Code: "no_limit", why: "a rule needs a limit: set {Seconds}, or {Limit}"}

// InGo returns what is wrong, with the names of fields as in Go.
func (r *Relation) InGo() string { return spell(r.why, func(name string) string { return name }) }

// InFile returns what is wrong, with the names of fields as in files.
func (r *Relation) InFile() string { return spell(r.why, Snake) }

// spell replaces the names in braces.
func spell(text string, name func(string) string) string {
	for {
		before, rest, ok := strings.Cut(text, "{")
		if !ok {
			return text
		}
		field, after, _ := strings.Cut(rest, "}")
		text = before + name(field) + after
	}
}

// Always reports whether the relation holds for all values that the fields can have in a file.
func (r *Relation) Always() bool {
	return r.When == "" && r.Is == "" && InFile(Snake(r.Field)).Form != Truth
}

// RelationOf returns the relation whose mistake has this code, or nil.
func RelationOf(code string) *Relation {
	for i := range Table {
		for _, relations := range [...][]Relation{Table[i].Needs, Table[i].Excludes} {
			for j := range relations {
				if relations[j].Code == code {
					return &relations[j]
				}
			}
		}
	}
	if code == NoLimit.Code {
		return &NoLimit
	}
	return nil
}

// Mistake is what is wrong with a field of a rule.
type Mistake struct {
	Field, Code, Why string
	Value            any
}

// Check returns what is wrong with a rule, as far as the table knows: numbers that are out of their
// bounds, and fields that need or exclude others.
func Check[Rule any](rule *Rule) (found []Mistake) {
	of := reflect.ValueOf(rule).Elem()
	for i := range Table {
		f := &Table[i]
		v := of.FieldByName(f.Name)
		if !isSet(v) {
			continue
		}
		if f.Form == Number && (v.Int() < f.Least || v.Int() > f.Most) {
			found = append(found, f.mistake(v, f.File()+"_range", fmt.Sprintf("must be %d to %d", f.Least, f.Most)))
		}
		for _, r := range f.Needs {
			if isText(v, r.When) && !r.isMet(of) {
				found = append(found, f.mistake(v, r.Code, r.InGo()))
			}
		}
		for _, r := range f.Excludes {
			if isText(v, r.When) && r.isMet(of) {
				found = append(found, f.mistake(v, r.Code, r.InGo()))
			}
		}
	}
	return found
}

// CheckOptions returns which fields of a rule need an option that is not set.
func CheckOptions[Rule, Options any](rule *Rule, options *Options) (found []Mistake) {
	of, with := reflect.ValueOf(rule).Elem(), reflect.ValueOf(options).Elem()
	for i := range Table {
		f := &Table[i]
		if v := of.FieldByName(f.Name); f.Option != "" && isSet(v) && with.FieldByName(f.Option).IsZero() {
			found = append(found, f.mistake(v, "no_"+Snake(f.Option), "needs Options."+f.Option+", "+f.Purpose))
		}
	}
	return found
}

func (f *Field) mistake(v reflect.Value, code, why string) Mistake {
	m := Mistake{Field: f.Name, Code: code, Why: why, Value: "a function"}
	if v.Kind() != reflect.Func {
		m.Value = v.Interface()
	}
	return m
}

// isMet reports whether the other field of a rule is set, to the wanted value.
func (r *Relation) isMet(of reflect.Value) bool {
	other := of.FieldByName(r.Field)
	return isSet(other) && isText(other, r.Is)
}

func isText(v reflect.Value, text string) bool {
	return text == "" || fmt.Sprint(v.Interface()) == text
}
