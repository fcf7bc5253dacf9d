package rulefile

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/internal/fleetrules"
)

// loaded is one version of the rules.
type loaded struct {
	rules   map[string]placedRule
	version string // a hash of the content, or the version of the document
	digest  string // identifies the content

	document fleetrules.Doc // the document that they come from, if any
	fallback bool           // whether they are a fallback
}

// placedRule is a rule and its place.
type placedRule struct {
	core.Rule
	place Place
	texts map[string]string // the fields as they are in the file; nil for a rule in Go
	written
}

// written is what a file says about a rule beside its values.
type written struct {
	places map[string]Place // of the fields
	keys   []string         // the texts of the field key
	uses   []FunctionUse
}

func (l *loaded) names() []string { return slices.Sorted(maps.Keys(l.rules)) }

// source says where the rules are from.
func (l *loaded) source() string {
	if l.document.Number > 0 {
		return fmt.Sprintf("version %d of the document", l.document.Number)
	}
	return "the files"
}

// placed returns errors of core with the places of the rules that they are about. A missing rule
// has its previous place.
func (l *loaded) placed(err error, before *loaded) error {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		var errs []error
		for _, one := range joined.Unwrap() {
			errs = append(errs, l.placed(one, before))
		}
		return errors.Join(errs...)
	}
	var wrong *core.RuleError
	if !errors.As(err, &wrong) {
		return err
	}
	rule, ok := l.rules[wrong.Rule]
	if !ok && before != nil {
		rule, ok = before.rules[wrong.Rule]
	}
	if !ok {
		return err
	}
	return &Error{
		Place: rule.place, Rule: wrong.Rule, within: "rule " + quote(wrong.Rule),
		Err: &fieldError{fieldOf(wrong.Field).String() + ": " + sentence(wrong), wrong},
	}
}
