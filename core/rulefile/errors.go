package rulefile

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// Place is a position in a file. Line and Column count from 1; Column counts characters. They are 0
// if the place is the whole file.
type Place struct {
	File         string
	Line, Column int
}

// String returns the place as file:line:column, or the file alone.
func (p Place) String() string {
	if p.Line == 0 {
		return p.File
	}
	return fmt.Sprintf("%s:%d:%d", p.File, p.Line, p.Column)
}

// Error is one thing that is wrong in a file. [Load] joins all that it finds, sorted by place.
type Error struct {
	Place Place
	// Rule is the name of the rule, or "" if the error is in no rule or in one without a name.
	Rule string
	// Err says what is wrong. It wraps a *core.RuleError if core refused the rule.
	Err error

	within string // the rule as messages name it
	unread bool   // the file could not be read, so it may be right or wrong
}

// Error implements error.
func (e *Error) Error() string {
	if e.within == "" {
		return fmt.Sprintf("%v: %v", e.Place, e.Err)
	}
	return fmt.Sprintf("%v: %s: %v", e.Place, e.within, e.Err)
}

// Unwrap returns Err.
func (e *Error) Unwrap() error { return e.Err }

// maxErrors bounds the errors that Load reports, because a file of one megabyte can hold a hundred
// thousand.
const maxErrors = 100

// problems collects the errors in the files that are loaded together.
type problems struct {
	found []*Error
	more  int // beyond maxErrors
	files []string
}

func (p *problems) add(e *Error) {
	if p.full() {
		p.more++
		return
	}
	p.found = append(p.found, e)
}

// count returns how many errors there are.
func (p *problems) count() int { return len(p.found) + p.more }

// full reports whether no more errors are kept.
func (p *problems) full() bool { return len(p.found) == maxErrors }

// join returns all errors in the order of the files, lines and columns, or nil if there are none.
func (p *problems) join() error {
	slices.SortStableFunc(p.found, func(a, b *Error) int {
		return cmp.Or(
			cmp.Compare(slices.Index(p.files, a.Place.File), slices.Index(p.files, b.Place.File)),
			cmp.Compare(a.Place.Line, b.Place.Line), cmp.Compare(a.Place.Column, b.Place.Column))
	})
	var errs []error
	for _, e := range p.found {
		errs = append(errs, e)
	}
	if p.more > 0 {
		errs = append(errs, fmt.Errorf("rulefile: and %d more errors", p.more))
	}
	return errors.Join(errs...)
}

// fieldError is an error about the value of a field; its text begins with the field.
type fieldError struct {
	text string
	core error // the *core.RuleError behind it, or nil
}

func (e *fieldError) Error() string { return e.text }

func (e *fieldError) Unwrap() error { return e.core }

// maxQuoted bounds what is quoted from a file, in bytes.
const maxQuoted = 64

// quote returns a text of the file in quotes, and no more than the beginning of a long one.
func quote(text string) string {
	if len(text) <= maxQuoted {
		return fmt.Sprintf("%q", text)
	}
	cut := maxQuoted
	for !utf8.RuneStart(text[cut]) {
		cut--
	}
	return fmt.Sprintf("%q...", text[:cut])
}

// list returns names for a sentence: "a, b, c" or "none".
func list(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}
