// Package ruleorigin knows where the rules of a set come from, and why the latest ones are not in
// force. Package rulefile tells package core by it.
package ruleorigin

import "time"

// Origin is where a version of a set's rules comes from.
type Origin struct {
	// Place returns where a rule stands, as limits.yaml:3:5.
	Place func(rule string) string
	// Key returns the key that a rule counts by as it is written there, or "" if none is.
	Key func(rule string) string
	// Document is the prefix of the document that the set follows, or "" if it follows none.
	Document string
	// Digest is the same for rules of the same text, whatever their version. If it is "", the
	// version takes its place.
	Digest string
	// Author and Note are those of the change, if they are known.
	Author, Note string
	// Changes say what is different from the version before, for the log.
	Changes []string
}

// Problem is why a set does not use the latest rules. Its text stands in Stats, so it stays as it is.
type Problem string

// The problems.
const (
	Wrong   Problem = "wrong"   // they were read, and have a mistake
	Unread  Problem = "unread"  // nobody knows what they are: Redis or a file cannot be read
	Lost    Problem = "lost"    // Redis has lost the document, or has an older version again
	Missing Problem = "missing" // no document was published yet
)

// RuleSet is what core.RuleSet, a defined type over it, has inside. So package rulefile converts a
// pointer to the one into a pointer to the other, and users see neither. Rule is core.Rule.
type RuleSet[Rule any] struct{ inside Set[Rule] }

// New returns a RuleSet with this inside.
func New[Rule any](inside Set[Rule]) *RuleSet[Rule] { return &RuleSet[Rule]{inside} }

// Inside returns what the set has inside, or nil if New did not make it.
func (s *RuleSet[Rule]) Inside() Set[Rule] {
	if s == nil {
		return nil
	}
	return s.inside
}

// Set has the methods of a RuleSet that only package rulefile may call. The function log that they
// return writes into the log of the Limiter. The caller calls it while it holds no lock, because
// the handler of the log may call the set, even its Close.
type Set[Rule any] interface {
	// Replace is RuleSet.Replace for rules from an origin. It does not report its error.
	Replace(from Origin, version string, rules []Rule) (log func(), err error)
	// ReportError is RuleSet.ReportError for an error that shows this problem.
	ReportError(problem Problem, err error) (log func())
	// ReportPolled warns that new rules are noticed late: there are no events, for the reason why,
	// and the files are read once in every.
	ReportPolled(why error, every time.Duration)
	// ReportPanic reports a panic that was caught.
	ReportPanic(err error)
}
