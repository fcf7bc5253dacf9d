package rulefile

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"

	"go.yaml.in/yaml/v3"

	"github.com/accesslimit/accesslimit/core"
)

// loadSources loads the rules from all sources that read returns. read adds what it cannot read to
// the problems.
func loadSources(limiter *core.Limiter, functions Functions, read func(*problems) []source) (*loaded, error) {
	l := newLoader(limiter, functions)
	l.loadAll(read)
	return l.finish()
}

// loadAll adds the rules of the sources that read returns.
func (l *loader) loadAll(read func(*problems) []source) {
	sources := read(&l.wrong)
	for _, from := range sources {
		l.load(from)
	}
	l.loaded.version = hashOf(sources)
	l.loaded.digest = l.loaded.version
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

// isRules reports whether a file was meant to hold rules, and otherwise adds an error. A wrong path
// may name any file, of which nothing must get into the log.
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
		l.loaded.rules[name] = placedRule{r.rule, Place{c.file, n.Line, n.Column}, fieldTexts(n), r.written}
	}
	if name == "" { // a stand-in, so that no further errors follow
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
