package rulefile

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"

	"go.yaml.in/yaml/v3"

	"github.com/accesslimit/accesslimit/core"
)

// Load reads the rules of files and folders, for this Limiter. A folder stands for the files
// *.yaml, *.yml and *.json directly in it, except hidden ones.
//
// If anything is wrong, there is no Set. The error joins an [*Error] for each mistake, at most 100,
// sorted by place. Nothing is claimed on the Limiter until [Set.Guard].
func Load(limiter *core.Limiter, functions Functions, paths ...string) (*Set, error) {
	return loadFirst(limiter, functions, paths, func(wrong *problems) []source { return readAll(paths, wrong) })
}

// loadFirst makes a Set of what read returns.
func loadFirst(limiter *core.Limiter, functions Functions, paths []string, read func(*problems) []source) (*Set, error) {
	if err := functions.check(); err != nil {
		return nil, err
	}
	if len(paths) == 0 {
		return nil, errors.New("rulefile: no file and no folder is named")
	}
	first, err := loadSources(limiter, functions, read)
	if err != nil {
		return nil, err
	}
	return newSet(limiter, functions, paths, first)
}

// newSet returns a Set with its first rules, or without any yet if first is nil.
func newSet(limiter *core.Limiter, functions Functions, paths []string, first *loaded) (*Set, error) {
	rules, err := limiter.RuleSet()
	if err != nil {
		return nil, err
	}
	s := &Set{limiter: limiter, functions: functions.clone(), paths: slices.Clone(paths), rules: rules, closed: make(chan struct{})}
	s.present.Store(&loaded{})
	if first == nil {
		return s, nil
	}
	defer s.logs.write()
	if err := s.replace(first); err != nil {
		return nil, err
	}
	return s, nil
}

// loadSources loads the rules of all that read returns. read adds to the problems what it cannot
// read.
func loadSources(limiter *core.Limiter, functions Functions, read func(*problems) []source) (*loaded, error) {
	l := newLoader(limiter, functions)
	sources := read(&l.wrong)
	for _, from := range sources {
		l.load(from)
	}
	l.loaded.version = hashOf(sources)
	l.loaded.digest = l.loaded.version
	return l.finish()
}

// hashOf returns the first digits of a hash of the files' contents.
func hashOf(sources []source) string {
	all := sha256.New()
	for _, from := range sources {
		fmt.Fprintf(all, "%d:", len(from.data))
		all.Write(from.data)
	}
	return hex.EncodeToString(all.Sum(nil)[:6])
}

// loader makes a version of the rules.
type loader struct {
	loaded    *loaded
	functions Functions
	wrong     problems
	limiter   *core.Limiter // for which the rules are; nil if it is not known here

	anyFunction bool // every name of a function is accepted: the functions are not known here
}

func newLoader(limiter *core.Limiter, functions Functions) *loader {
	return &loader{loaded: &loaded{rules: make(map[string]placedRule)}, functions: functions, limiter: limiter}
}

// load adds the rules of a file.
func (l *loader) load(from source) {
	root := parse(from, &l.wrong)
	if root == nil || !l.isRules(root, from.name) {
		return
	}
	c := &checker{file: from.name, wrong: &l.wrong, bad: make(map[*yaml.Node]bool), anyFunction: l.anyFunction}
	c.check(root, document, "")
	rules := get(root, "rules")
	if rules == nil || rules.Kind != yaml.SequenceNode || len(rules.Content) > maxRules {
		return
	}
	for _, n := range rules.Content {
		if n.Kind == yaml.MappingNode && len(n.Content) > 0 && len(n.Content) <= 2*maxFields {
			l.add(c, n)
		}
	}
}

// isRules reports whether a file was meant to hold rules, and otherwise adds that it was not. Of
// another file, which a wrong path may name, nothing must get into the log.
func (l *loader) isRules(root *yaml.Node, file string) bool {
	if get(root, "version") != nil || get(root, "rules") != nil {
		return true
	}
	l.wrong.add(&Error{Place: Place{file, root.Line, root.Column}, Err: errors.New("is not a rules file: it must be a mapping with version and rules")})
	return false
}

// add adds a rule, or what is wrong with it.
func (l *loader) add(c *checker, n *yaml.Node) {
	c.enter(n)
	defer c.leave()
	r := c.readRule(n, &l.functions)
	name := r.rule.Name
	first, taken := l.loaded.rules[name]
	switch {
	case taken:
		c.fail(get(n, "name"), "", fmt.Sprintf("is also at %v: each name stands for one rule", first.place))
	case name != "" && len(l.loaded.rules) == maxRules:
		c.fail(n, "", fmt.Sprintf("there are more than %d rules", maxRules))
	case name != "": // otherwise there is an error already
		l.loaded.rules[name] = placedRule{r.rule, Place{c.file, n.Line, n.Column}, fieldTexts(n)}
	}
	if name == "" { // nothing must follow from that
		r.rule.Name = "without a name"
	}
	r.validate(l.limiter)
}

// finish returns the rules, or what was wrong.
func (l *loader) finish() (*loaded, error) {
	if err := l.wrong.join(); err != nil {
		return nil, err
	}
	return l.loaded, nil
}
