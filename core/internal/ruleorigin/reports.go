package ruleorigin

import (
	"cmp"
	"sync"
	"time"
)

// maxReported bounds the errors that are logged until the next success.
const maxReported = 100

// State is what Stats shows of a set. core.RuleSetStats, which has the same fields, describes them.
type State struct {
	Names       []string
	Version     string
	Document    string
	Digest      string
	Since       time.Time
	Fallback    bool
	Problem     string
	LastError   string
	LastErrorAt time.Time
}

// Log has the lines about the state of a set.
type Log interface {
	RulesOutdated(problem Problem, version string, fallback bool, err error)
	RulesCurrent(version string)
}

// Reports keeps the state of a set, and returns functions that log its changes. Call these
// functions without holding a lock. Make Reports with NewReports. It is safe for concurrent use.
type Reports struct {
	log      Log
	mu       sync.Mutex
	now      State
	reported map[string]bool // the errors that were logged since the last success
}

// NewReports returns the reports of a set without a version.
func NewReports(log Log) *Reports {
	return &Reports{log: log, now: State{Since: time.Now()}, reported: make(map[string]bool)}
}

// State returns the state, without the names.
func (r *Reports) State() State {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.now
}

// Replaced notes that a version is in force.
func (r *Reports) Replaced(version string, from Origin) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.now = State{Version: version, Document: from.Document, Digest: cmp.Or(from.Digest, version), Since: time.Now(), Fallback: from.Fallback}
	clear(r.reported)
}

// Failed notes why the latest rules are not in force. log reports that, unless it was reported
// since the last success.
func (r *Reports) Failed(problem Problem, err error) (log func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	text := err.Error()
	r.now.Problem, r.now.LastError, r.now.LastErrorAt = string(problem), text, time.Now()
	if r.reported[text] || len(r.reported) == maxReported {
		return func() {}
	}
	r.reported[text] = true
	version, fallback := r.now.Version, r.now.Fallback
	return func() { r.log.RulesOutdated(problem, version, fallback, err) }
}

// Succeeded notes that the version in force is the latest one. log reports that, if there was an
// error before.
func (r *Reports) Succeeded() (log func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	wasWrong, version := r.now.LastError != "", r.now.Version
	r.now.Problem, r.now.LastError, r.now.LastErrorAt = "", "", time.Time{}
	clear(r.reported)
	if !wasWrong {
		return func() {}
	}
	return func() { r.log.RulesCurrent(version) }
}
