// Package ruleorigin describes where the rules of a set come from, and why the latest ones are not
// in force. Package rulefile passes this to package core.
package ruleorigin

import "time"

// Origin is where a version of a set's rules comes from.
type Origin struct {
	// Place returns where a rule is written, such as limits.yaml:3:5.
	Place func(rule string) string
	// Key returns the key of a rule as it is written there, or "" if there is none.
	Key func(rule string) string
	// Document is the prefix of the document that the set follows, or "" if it follows none.
	Document string
	// Digest identifies the text of the rules, whatever their version. If it is "", the version is
	// used instead.
	Digest string
	// Fallback reports whether the rules are used only until the document can be.
	Fallback bool
	// Author and Note are the author and the note of the change, if known.
	Author, Note string
	// Changes says what differs from the previous version, for the log.
	Changes []string
	// Unaudited keeps the version out of the audit, because no service decides by it.
	Unaudited bool
}

// Problem is why a set does not use the latest rules. Its text appears in Stats, so it must not
// change.
type Problem string

// The problems.
const (
	Wrong   Problem = "wrong"   // they were read, and have a mistake
	Unread  Problem = "unread"  // they are not known, because Redis or a file cannot be read
	Lost    Problem = "lost"    // Redis has lost the document, or has gone back to an older version
	Missing Problem = "missing" // there is no document, or not any more
)

// RuleSet is the underlying type of core.RuleSet, so that package rulefile can convert a pointer to
// one into a pointer to the other, and users see nothing of it. Rule is core.Rule.
type RuleSet[Rule any] struct{ inside Set[Rule] }

// New returns a RuleSet with these methods.
func New[Rule any](inside Set[Rule]) *RuleSet[Rule] { return &RuleSet[Rule]{inside} }

// Inside returns the internal methods of the set, or nil if New did not make it.
func (s *RuleSet[Rule]) Inside() Set[Rule] {
	if s == nil {
		return nil
	}
	return s.inside
}

// Set has the methods of a RuleSet that only package rulefile may call. The function log that they
// return writes to the log of the Limiter. The caller must call it without holding a lock, because
// the log's handler may call the set, even its Close.
type Set[Rule any] interface {
	// Replace is RuleSet.Replace for rules from an origin. It does not report its error.
	Replace(from Origin, version string, rules []Rule) (log func(), err error)
	// ReportError is RuleSet.ReportError for an error that shows this problem.
	ReportError(problem Problem, err error) (log func())
	// ReportPolled warns that new rules are noticed late: why says why there are no events, and
	// every is how often the files are read instead.
	ReportPolled(why error, every time.Duration)
	// ReportPanic reports a panic that was caught.
	ReportPanic(err error)
}
