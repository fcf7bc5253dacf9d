// Package rulefield has the table of the fields of core.Rule. Whatever has to know all of them reads
// it: the check of rules, files with rules and their schema, what a change of a file does to the
// counters, and what Explain and the page show of a rule. It does not import core, so it finds a field
// by its name.
//
// A further field of Rule is declared in core/rule.go and described in table.go, with the fields that
// it needs or excludes. Its meaning, and the test of that, are code of its own. go generate in
// core/rulefile writes it into schema.json. The test of the table says what is missing.
package rulefield

import (
	"strings"
	"unicode"
)

// Field describes a field of core.Rule.
type Field struct {
	Name string // in Go
	Doc  string // what it is for, in the schema of files

	Form        Form
	Least, Most int64  // of a Number
	Functions   string // the field of rulefile.Functions that has the functions which a Function names

	// Needs are fields without which this one is a mistake, and Excludes are fields beside which it is.
	Needs, Excludes []Relation
	// Option is the field of core.Options without which this one is a mistake, or "". Purpose says what
	// it is needed for.
	Option, Purpose string

	Counters Counters
	// Words say what the field makes a rule do, in the list that Traits returns. A verb such as %s
	// stands for the field's value. Words is "" if the field is shown in another way.
	Words string
}

// Form is the form of a field's value in a file.
type Form uint8

// The forms.
const (
	Text Form = iota
	Name
	Number
	Truth
	Fractions
	Limit
	Limits
	Plans
	Function
	Key
	Ban
	Mode
	Skip
	Patterns // of paths
	Methods  // of HTTP
	StorePolicy
)

// Counters say what becomes of the counters of a rule when a field changes.
type Counters uint8

// The fates of the counters.
const (
	Keep      Counters = iota // they keep their use
	ByLimit                   // they start empty with another window or algorithm
	ByResult                  // the same, for a limit that a function returns
	BySubject                 // they start empty if other subjects are counted
	ByMode                    // they start empty if the rule was only tried, or is now
)

// File returns the name of the field in a file.
func (f *Field) File() string { return Snake(f.Name) }

// InFile returns the field that a file calls so, or nil.
func InFile(name string) *Field {
	for i := range Table {
		if Table[i].File() == name {
			return &Table[i]
		}
	}
	return nil
}

// Snake returns a name of Go as files spell it: max_count for MaxCount.
func Snake(name string) string {
	var b strings.Builder
	for i, r := range name {
		if unicode.IsUpper(r) && i > 0 {
			b.WriteByte('_')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}
