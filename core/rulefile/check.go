package rulefile

import (
	"errors"
	"fmt"
	"slices"

	"github.com/accesslimit/accesslimit/core"
)

// Service says what a service has that its files must agree with: see [Check].
type Service struct {
	// Require are the names of the rules that the service attaches. Files that lack one are wrong.
	// The default is none.
	Require []string
	// Functions are those that the service registers. If it is nil, they are not known, and a file
	// may name any function.
	Functions *Functions
}

// Checked holds the rules of files that were checked without a Limiter. Make one with [Check] or
// [CheckText]. It is safe for concurrent use.
type Checked struct {
	loaded  *loaded
	guessed bool // the service's functions were not known
}

// Check checks files and folders, as [Load] takes them, without a Limiter: in CI, or in a test of
// the service. It refuses what Load refuses, and files without a rule that the service requires:
//
//	checked, err := rulefile.Check(rulefile.Service{Require: []string{"api", "login"}}, "limits.yaml")
//
// Only a Limiter knows whether Options.Identify and Options.OnThreshold are set, and which rules in
// Go have the same names. The error joins an [*Error] for each mistake, as that of Load does.
// [Checked.Warnings] has what is allowed, but unwise.
func Check(service Service, paths ...string) (*Checked, error) {
	if len(paths) == 0 {
		return nil, errNoFiles
	}
	return service.check(func(wrong *problems) []source { return readAll(paths, wrong) })
}

// CheckText is like [Check] for the text of a file or a [Document]. The name stands for it in
// places. A text that is valid JSON is read as JSON, and any other as YAML.
func CheckText(service Service, name, text string) (*Checked, error) {
	return service.check(func(wrong *problems) []source { return documentSources(name, text, wrong) })
}

var errNoFiles = errors.New("rulefile: no file and no folder is named")

func (service Service) check(read func(*problems) []source) (*Checked, error) {
	functions := Functions{}
	if service.Functions != nil {
		functions = *service.Functions
	}
	if err := functions.check(); err != nil {
		return nil, err
	}
	l := newLoader(nil, functions)
	l.anyFunction = service.Functions == nil
	l.loadAll(read)
	if l.wrong.count() == 0 { // otherwise a mistake may hide a rule
		l.require(service.Require)
	}
	found, err := l.finish()
	if err != nil {
		return nil, err
	}
	return &Checked{found, l.anyFunction}, nil
}

// require adds an error for each of these names that no rule has.
func (l *loader) require(names []string) {
	for _, name := range names {
		if _, ok := l.loaded.rules[name]; !ok {
			l.wrong.add(&Error{
				Place: Place{File: list(l.wrong.files)}, Rule: name, within: "rule " + quote(name),
				Err: fmt.Errorf("is required, and missing%s; the rules there: %s", didYouMean(name, l.loaded.names()), list(l.loaded.names())),
			})
		}
	}
}

// Names returns the names of the rules, sorted.
func (c *Checked) Names() []string { return c.loaded.names() }

// Functions returns the functions that the rules name, in the order of the rules' names.
func (c *Checked) Functions() (uses []FunctionUse) {
	for _, name := range c.loaded.names() {
		uses = append(uses, c.loaded.rules[name].uses...)
	}
	return slices.Clip(uses)
}

// Diff returns what would change for callers if the rules of next replaced these, as [Set.Diff]
// does.
func (c *Checked) Diff(next *Checked) []Change { return c.loaded.diff(next.loaded) }

// Attach attaches all rules to a Limiter through which operators look and act, with package operate.
// They are attached as long as the program holds the Guard. Unlike a version that [Load] reads, this
// one is not written into the audit, because no service decides by it. If the rules name functions,
// [Service].Functions must have been given, perhaps made by [StandIns].
func (c *Checked) Attach(limiter *core.Limiter) (*core.Guard, error) {
	if c.guessed && len(c.Functions()) > 0 {
		return nil, errors.New("rulefile: rules that name functions can be attached only if Check was given Service.Functions")
	}
	s, err := newSet(limiter, Functions{}, nil, nil)
	if err != nil {
		return nil, err
	}
	s.unaudited = true
	if err := s.replace(c.loaded); err != nil {
		return nil, err
	}
	return s.Guard(c.Names()...)
}
