// Package rulefield has the table of the fields of core.Rule. Everything that has to know all
// fields reads it: the check of rules, rule files and their schema, the report on what a change of
// a file does to the counters, and what Explain and the page show of a rule. It does not import
// core, so it finds a field by its name.
//
// A further field of Rule is declared in core/rule.go and described in table.go, with the fields
// that it needs or excludes. Its effect and the test of that effect must be written separately. go
// generate in core/rulefile adds it to schema.json. The test of the table says what is missing.
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
	Functions   string // the field of rulefile.Functions with the functions that a Function can name

	// Needs are the fields that must be set with this one, and Excludes are the fields that must
	// not.
	Needs, Excludes []Relation
	// Option is the field of core.Options that must be set with this one, or "". Purpose says what
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
	Bill
	Mode
	Skip
	Patterns // of paths
	Methods  // of HTTP
	StorePolicy
)

// Counters says what happens to the counters of a rule when a field changes.
type Counters uint8

// The fates of the counters.
const (
	Keep      Counters = iota // they keep their use
	ByLimit                   // they start empty with another window or algorithm
	ByResult                  // the same, for a limit that a function returns
	BySubject                 // they start empty if other subjects are counted
	ByMode                    // they start empty if the rule was in DryRun, or is now
)

// File returns the name of the field in a file.
func (f *Field) File() string { return Snake(f.Name) }

// InFile returns the field with this name in files, or nil.
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
