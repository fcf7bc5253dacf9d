package limiter

import (
	"fmt"

	"github.com/accesslimit/accesslimit/core/adapter"
	"github.com/accesslimit/accesslimit/core/internal/engine"
	"github.com/accesslimit/accesslimit/core/internal/pathmatch"
	"github.com/accesslimit/accesslimit/core/internal/route"
)

// Trial takes the steps of calls by the rules of all Guards and Checks in use, as they were when it
// was made, for reports. The engine asks another store than the limiter's. Nothing is charged,
// counted or logged. It is not safe for concurrent use.
type Trial interface {
	// Calls returns what each guard has noted of its calls, in the order in which the guards were
	// made, and how many more guards there are that are not listed.
	Calls() (noted []route.Noted, notListed int)
	// OfCall identifies the caller of a call that an adapter shows, unless who has the User, and
	// returns the rules as they apply to the call. The methods below take their indices. explain is
	// pathmatch.Explain.
	OfCall(v adapter.View, who Caller, explain pathmatch.Explainer) ([]TrialRule, Caller)
	// OfSubject returns the rules for a subject: each under every name by which it has counted. The
	// view shows a call of which nothing is known.
	OfSubject(v adapter.View, subject string) []TrialRule
	// Prepare runs the functions of a rule that applies to the call, each once.
	Prepare(rule int) *Prepared
	// Decide decides the call by the steps of a middleware that has these rules.
	Decide(rules ...int) Ruling
	// DecideBy decides a call of the subject by a rule alone, with the limit own in place of the
	// rule's, or without a limit if that is nil.
	DecideBy(rule int, own *engine.Limit, cost int64) Ruling
}

// Caller is who makes a call.
type Caller struct {
	User    string
	Known   bool     // the User is known, even if that is nobody
	Address string   // "" if it is not known
	Failed  *Failure // of Identify
}

// TrialRule is a rule as operators are told of it.
type TrialRule struct {
	// Counted is what the engine knows of the rule under the name by which it counts.
	Counted *engine.Rule
	Guard   int // the index of its Guard or Check
	// Place is where the rule is written, or was attached. Version is that of its RuleSet.
	Place, Version string
	InHandler      bool // it belongs to a Check
	ByRoute        bool // it is named after the route of each call
	HasPatterns    bool // it is for calls with certain paths
	NeedsLogin     bool
	Computes       bool     // a function computes its limit for each call
	Traits         []string // what the rule does besides counting, in words
	// Applies reports whether the rule applies to the call, and Because says why or why not.
	Applies bool
	Because string
	// Plans are the limits of its plans; nil for Unlimited. Computed are limits that its function has
	// returned so far.
	Plans    map[string]*engine.Limit
	Computed []*engine.Limit
}

// Prepared is what the functions of a rule returned for a call.
type Prepared struct {
	Subject string // "" if the call is not counted
	Plan    string
	Cost    int64
	Free    bool // the call costs nothing
	// Own is the limit in place of the rule's own, or nil if that is Unlimited.
	Own *engine.Limit
	// Err says why there is no Subject.
	Err      error
	Failures []Failure
}

// Failure is that of a function of a rule, or of Identify.
type Failure struct {
	Function string // the name of its field
	Err      error
	Panicked bool
}

// Try calls a function of the service, and returns why it failed, or nil. If it panics, that is why.
func Try(name string, do func() error) (failed *Failure) {
	defer func() {
		if p := recover(); p != nil {
			failed = &Failure{Function: name, Err: fmt.Errorf("panicked: %v", p), Panicked: true}
		}
	}()
	if err := do(); err != nil {
		return &Failure{Function: name, Err: err}
	}
	return nil
}

// Ruling is what rules make of a call.
type Ruling struct {
	Reason string
	By     int   // the rule that gives the reason
	Wait   int64 // microseconds until the call fits; 0 if it fits now, or never
}
