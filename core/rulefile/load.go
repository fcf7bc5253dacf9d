package rulefile

import (
	"errors"
	"fmt"
	"log/slog"

	"go.yaml.in/yaml/v3"

	"github.com/accesslimit/accesslimit/core"
)

// Load reads the rules of files and folders, for this Limiter. A folder stands for the files
// *.yaml, *.yml and *.json directly in it, except hidden ones.
//
// If anything is wrong, there is no Set. The error joins an [*Error] for each mistake, at most 100,
// sorted by place. Nothing is claimed on the Limiter until [Set.Guard].
func Load(limiter *core.Limiter, functions Functions, paths ...string) (*Set, error) {
	if err := functions.check(); err != nil {
		return nil, err
	}
	if len(paths) == 0 {
		return nil, errors.New("rulefile: Load needs a file or a folder")
	}
	l, err := newLoader(limiter, functions)
	if err != nil {
		return nil, err
	}
	defer l.trial.Close()
	for _, from := range readAll(paths, &l.wrong) {
		l.load(from)
	}
	return l.finish()
}

// loader makes a Set.
type loader struct {
	set       *Set
	functions Functions
	wrong     problems
	trial     *core.Limiter // on which rules are tried
}

func newLoader(limiter *core.Limiter, functions Functions) (*loader, error) {
	trial, err := newTrial(limiter)
	if err != nil {
		return nil, err
	}
	set := &Set{limiter: limiter, rules: make(map[string]placedRule)}
	return &loader{set: set, functions: functions, trial: trial}, nil
}

// newTrial returns a Limiter that refuses the rules that the given one refuses, because rules that
// are only tried must leave no names on that.
func newTrial(limiter *core.Limiter) (*core.Limiter, error) {
	options := core.Options{Logger: slog.New(slog.DiscardHandler), MaxKeys: 1}
	var wrong *core.RuleError
	switch _, err := limiter.Check(core.Rule{Seconds: 1, NeedLogin: true}); {
	case err == nil:
		options.Identify = func(core.Request) (string, error) { return "", nil }
	case !errors.As(err, &wrong) || wrong.Field != "NeedLogin":
		return nil, err
	}
	return core.New(options)
}

// load adds the rules of a file.
func (l *loader) load(from source) {
	root := parse(from, &l.wrong)
	if root == nil {
		return
	}
	c := &checker{file: from.name, wrong: &l.wrong, bad: make(map[*yaml.Node]bool)}
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

// add adds a rule, or what is wrong with it.
func (l *loader) add(c *checker, n *yaml.Node) {
	c.enter(n)
	defer c.leave()
	r := c.readRule(n, &l.functions)
	name := r.rule.Name
	first, taken := l.set.rules[name]
	switch {
	case taken:
		c.fail(get(n, "name"), "", fmt.Sprintf("is also at %v: each name stands for one rule", first.place))
	case name != "" && len(l.set.rules) == maxRules:
		c.fail(n, "", fmt.Sprintf("there are more than %d rules", maxRules))
	case name != "": // otherwise there is an error already
		l.set.rules[name] = placedRule{r.rule, Place{c.file, n.Line, n.Column}}
	}
	if name == "" || taken { // on a Limiter, rules of one name have one limit
		r.rule.Name = fmt.Sprintf("(%d:%d)", n.Line, n.Column)
	}
	r.validate(l.trial)
}

// finish returns the Set, or what was wrong.
func (l *loader) finish() (*Set, error) {
	if err := l.wrong.join(); err != nil {
		return nil, err
	}
	return l.set, nil
}
