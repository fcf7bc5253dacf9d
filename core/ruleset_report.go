package core

import (
	"errors"
	"time"

	"github.com/accesslimit/accesslimit/core/internal/ruleorigin"
)

// maxReported bounds the errors that a set logs until the next success.
const maxReported = 100

// ReportError reports that the latest rules could not be read, so the present ones stay in force. An
// error that wraps a *[RuleError] reports that they were read, and are wrong. [Limiter.Stats] show
// the error until the next success, and the log has it once until then. A nil error is such a
// success: it reports that the present version is the latest one again. Replace reports its own
// errors and successes.
func (s *RuleSet) ReportError(err error) {
	inside := s.inside()
	if inside == nil {
		panic(errZeroRuleSet)
	}
	problem := ruleorigin.Unread
	if wrong := (*RuleError)(nil); errors.As(err, &wrong) {
		problem = ruleorigin.Wrong
	}
	inside.ReportError(problem, err)()
}

// ReportError implements ruleorigin.Set.
func (s *ruleSet) ReportError(problem ruleorigin.Problem, err error) (log func()) {
	switch {
	case err == nil:
		return s.clear()
	case s.record(problem, err.Error()):
		version := s.version()
		return func() { s.registry.log.RulesOutdated(problem, version, err) }
	default:
		return func() {}
	}
}

// record keeps an error for Stats, and reports whether it is a new one.
func (s *ruleSet) record(problem ruleorigin.Problem, text string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stats.Problem, s.stats.LastError, s.stats.LastErrorAt = string(problem), text, time.Now()
	if s.reported[text] || len(s.reported) == maxReported {
		return false
	}
	if s.reported == nil {
		s.reported = make(map[string]bool)
	}
	s.reported[text] = true
	return true
}

// clear forgets the errors. log says so if there were any.
func (s *ruleSet) clear() (log func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	wasWrong, version := s.stats.LastError != "", s.present.name
	s.stats.Problem, s.stats.LastError, s.stats.LastErrorAt, s.reported = "", "", time.Time{}, nil
	if !wasWrong {
		return func() {}
	}
	return func() { s.registry.log.RulesCurrent(version) }
}

func (s *ruleSet) version() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.present.name
}
