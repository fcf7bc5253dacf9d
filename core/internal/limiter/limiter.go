// Package limiter has the internals of a limiter, for core and the packages beside it: the store,
// the memory of its answers, the lists that operators read, and the log.
//
// [core.Limiter] is a defined type over [Limiter]. So a package beside core can convert a pointer
// to one into a pointer to the other, and users see nothing of it. The parts do not know what a
// rule is. [Front] answers what only core knows. The type parameter Rule is core.Rule.
package limiter

import (
	"context"

	"github.com/accesslimit/accesslimit/core/internal/engine"
	"github.com/accesslimit/accesslimit/core/internal/operatorlog"
)

// Limiter holds the parts of a limiter and its front. The zero Limiter has neither.
type Limiter[Rule any] struct {
	parts Parts
	front Front[Rule]
}

// NeverMade is what is wrong with a nil Limiter, or a zero one.
const NeverMade = "was never made: use core.New, and check its error"

// Front answers what only core knows, about rules and the functions of the service.
type Front[Rule any] interface {
	// Attached returns the rules in force of all Guards and Checks that the service holds, in the
	// order in which they were attached, and the number of further Guards and Checks that are not
	// listed.
	Attached() (rules []AttachedRule[Rule], notListed int)
	// Outgoing prepares a rule for calls that go out, and lists it among the attached ones. The
	// error is that of Guard.
	Outgoing(rule Rule) (Outgoing, error)
	// Trial begins a report on how calls would be decided. Its engine asks this store.
	Trial(engine.Store) Trial
	// CheckSubject returns what is wrong with a subject that an operator passes, or nil.
	CheckSubject(name, subject string) error
	// Failed counts and logs that the store did not answer a question about a name, and returns the
	// error for the caller. If err is nil or the error of the caller's context, it only returns
	// err.
	Failed(name string, err error) error
	// Pauses reports whether rules with the name are for calls that go out, which pauses stop.
	Pauses(name string) bool
	// PausingRules returns the names of the rules for calls that go out.
	PausingRules() []string
	// CompileLimits returns what calls need of limits in their text form: see marks.Options.
	CompileLimits(text string) (any, error)
	// ResetRules forgets what a subject has used of the attached rules of a name. known reports
	// whether there are any.
	ResetRules(ctx context.Context, name, subject string) (changed, known bool, err error)
}

// AttachedRule is a rule of a Guard or a Check.
type AttachedRule[Rule any] struct {
	Rule  Rule     // a copy, with its Limit
	Names []string // the names by which it counts, in no order
	// Place is where the rule is written, or was attached. Version is that of its RuleSet.
	Place, Version string
	Key            string // as written there, or ""
	InHandler      bool   // it belongs to a Check
	Outgoing       bool   // it is for calls that go out
}

// New returns a Limiter. It connects to nothing.
func New[Rule any](config Config, front Front[Rule]) *Limiter[Rule] {
	l := &Limiter[Rule]{front: front}
	l.parts.Config, l.parts.Log = config, operatorlog.New(config.Logger)
	l.parts.Assemble(front.CompileLimits)
	return l
}

// Front returns the limiter's front, or nil if New did not make the limiter.
func (l *Limiter[Rule]) Front() Front[Rule] {
	if l == nil {
		return nil
	}
	return l.front
}

// Parts returns the limiter's parts.
func (l *Limiter[Rule]) Parts() *Parts { return &l.parts }
