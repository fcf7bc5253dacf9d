// Package ruleorigin lets package rulefile tell package core where the rules of a set come from,
// and decide when their log lines are written.
package ruleorigin

import "time"

// Origin is where a version of a set's rules comes from.
type Origin struct {
	// Place returns where a rule stands, as limits.yaml:3:5.
	Place func(rule string) string
	// Author and Note are those of the change, if they are known.
	Author, Note string
	// Changes say what is different from the version before, for the log.
	Changes []string
}

// Set has the methods of a RuleSet that only package rulefile may call. The function log that they
// return writes into the log of the Limiter. The caller calls it while it holds no lock, because
// the handler of the log may call the set.
type Set interface {
	// Replace is RuleSet.Replace for rules from an origin, which are a []core.Rule. It does not
	// report its error.
	Replace(from Origin, version string, rules any) (log func(), err error)
	// ReportError is RuleSet.ReportError.
	ReportError(err error) (log func())
	// ReportPolled warns that new rules are noticed late: there are no events, for the reason why,
	// and the files are read once in every.
	ReportPolled(why error, every time.Duration)
}

// Of returns a *core.RuleSet as a Set. Package core sets it.
var Of func(set any) Set
