package limiter

import (
	"fmt"

	"github.com/accesslimit/accesslimit/core/adapter"
	"github.com/accesslimit/accesslimit/core/internal/engine"
	"github.com/accesslimit/accesslimit/core/internal/marks"
	"github.com/accesslimit/accesslimit/core/internal/pathmatch"
	"github.com/accesslimit/accesslimit/core/internal/route"
)

// Trial decides calls for reports, by the rules of all Guards and Checks that were in use when it
// was made. It goes through the same steps as calls, but asks its own store, and charges, counts
// and logs nothing. It is not safe for concurrent use.
type Trial interface {
	// Notes returns what each guard has noted about its calls, in the order in which the guards
	// were made, and the number of further guards that are not listed.
	Notes() (noted []route.Noted, notListed int)
	// OfCall identifies the caller of a call that an adapter shows, unless who already has the
	// User, and returns the rules as they apply to the call. The methods below take the indexes of
	// these rules. explain is pathmatch.Explain.
	OfCall(v adapter.View, who Caller, explain pathmatch.Explainer) ([]TrialRule, Caller)
	// OfSubject returns the rules for a subject, each under every name that it has counted by, and
	// handles as if they were rules. From then on, Notes includes handles. The view shows a call about
	// which nothing is known.
	OfSubject(v adapter.View, subject string) []TrialRule
	// Marked returns the marks of a subject under a rule that hold now. If one is Limited, instead are its
	// limits, unless they do not suit the rule. For a call, the caller's address counts too.
	Marked(rule int, subject string) (found marks.Found, instead []*engine.Limit)
	// Prepare runs the functions of a rule that applies to the call, each once.
	Prepare(rule int) *Prepared
	// Decide decides the call as a middleware with these rules would. A rule in DryRun is decided
	// alone.
	Decide(rules ...int) Ruling
	// DecideBy decides a call of the subject by a single rule. own replaces the rule's limit; nil
	// means no limit.
	DecideBy(rule int, own *engine.Limit, cost int64) Ruling
}

// Caller is who makes a call.
type Caller struct {
	User    string
	Known   bool     // whether the User is known; the User may be "", nobody
	Address string   // "" if it is not known
	Failed  *Failure // of Identify
}

// TrialRule is a rule as reports show it.
type TrialRule struct {
	// Counted is what the engine knows of the rule under the name that it counts by.
	Counted *engine.Rule
	Mode    uint8 // a core.Mode
	Guard   int   // the index of its Guard or Check
	// Place is where the rule is written, or was attached. Version is that of its RuleSet.
	Place, Version string
	InHandler      bool // it belongs to a Check
	Outgoing       bool // it is for calls that go out
	Handle         bool // it is a handle
	ByRoute        bool // it is named after the route of each call
	HasPatterns    bool // it is for calls with certain paths
	NeedsLogin     bool
	Computes       bool     // a function computes its limit for each call
	Traits         []string // what the rule does besides counting, in words
	// StrikeTail is what follows the subject in the key of its strikes, and Ban are the terms of the
	// bans that the rule imposes, or nil.
	StrikeTail string
	Ban        *marks.Terms
	// Applies reports whether the rule applies to the call, and Because says why or why not.
	Applies bool
	Because string
	// Plans holds the limits of its plans, with nil for Unlimited. Computed holds the limits that
	// its function has returned so far.
	Plans    map[string]*engine.Limit
	Computed []*engine.Limit
}

// Prepared is what the functions of a rule returned for a call.
type Prepared struct {
	Subject string // "" if the call is not counted
	Plan    string
	Cost    int64
	Free    bool // the call costs nothing
	// Own is the limit that replaces the rule's own, or nil if it is Unlimited.
	Own *engine.Limit
	// Err says why there is no Subject.
	Err      error
	Failures []Failure
}

// Failure is the failure of a rule's function or of Identify.
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

// Ruling is the result of deciding a call by rules.
type Ruling struct {
	Reason string
	By     int   // the rule that gives the reason
	Wait   int64 // microseconds until the call fits; 0 if it fits now, or never
}
