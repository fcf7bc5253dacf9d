package rulefile

import (
	"errors"
	"fmt"
	"runtime"
	"slices"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/internal/codeplace"
)

// Fallback holds the rules that a process uses until it has read its document. Make one with
// [Files] or [Rules]. See [Follow].
type Fallback struct {
	paths []string
	rules []core.Rule
	place Place // of the rules
}

// Files returns the rules of files and folders, as [Load] takes them. They are read once, by
// [Follow].
func Files(paths ...string) Fallback { return Fallback{paths: paths} }

// Rules returns rules in Go. Each needs a Name.
func Rules(rules ...core.Rule) Fallback {
	var caller [1]uintptr
	frame, _ := runtime.CallersFrames(caller[:runtime.Callers(2, caller[:])]).Next()
	return Fallback{rules: rules, place: Place{File: codeplace.OfFrame(&frame)}}
}

// loadFallback loads the rules of all fallbacks together.
func loadFallback(limiter *core.Limiter, functions Functions, fallback []Fallback) (*loaded, error) {
	l := newLoader(limiter, functions)
	var sources []source
	for _, from := range fallback {
		files := readAll(from.paths, &l.wrong)
		for _, file := range files {
			l.load(file)
		}
		sources = append(sources, files...)
		l.addRules(from)
	}
	l.loaded.digest, l.loaded.fallback = hashOf(sources), true
	l.loaded.version = "fallback-" + l.loaded.digest
	if slices.ContainsFunc(fallback, func(from Fallback) bool { return len(from.rules) > 0 }) {
		l.loaded.digest = l.loaded.version // rules in Go have no text
	}
	return l.finish()
}

// addRules adds rules in Go, or what is wrong with them.
func (l *loader) addRules(from Fallback) {
	for _, rule := range from.rules {
		sound := true
		fail := func(err error) {
			sound = false
			l.wrong.add(&Error{Place: from.place, Rule: rule.Name, Err: err, within: "rule " + quote(rule.Name)})
		}
		for _, wrong := range rule.Check(l.limiter) {
			fail(wrong)
		}
		switch first, taken := l.loaded.rules[rule.Name]; {
		case rule.Name == "":
			fail(errors.New("a rule has no Name"))
		case taken:
			fail(fmt.Errorf("is also at %v: each name stands for one rule", first.place))
		}
		if sound {
			l.loaded.rules[rule.Name] = placedRule{Rule: rule, place: from.place}
		}
	}
}
