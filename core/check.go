package core

import (
	"context"

	"github.com/accesslimit/accesslimit/core/adapter"
)

// Check decides by rules inside a handler, where only the handler knows the subject: the account in
// the body of a login, the forum of a post. Make one with [Limiter.Check] when the service starts,
// and pass it to the Allow function of an adapter. It is safe for concurrent use.
type Check struct {
	guard *Guard
}

// Check returns a [Check] of these rules. They are decided together, all charged or none. The error
// is that of [Limiter.Guard]. Rules with Count or [Concurrency] are refused too, because a Check
// does not learn how the call ends.
func (l *Limiter) Check(rules ...Rule) (*Check, error) {
	g, err := l.guard(rules, true)
	if err != nil {
		return nil, err
	}
	return &Check{g}, nil
}

// MustCheck is like Check but panics if a rule is wrong.
func (l *Limiter) MustCheck(rules ...Rule) *Check { return orPanic(l.Check(rules...)) }

// Allow decides whether the call that v shows may go on. The subject replaces the key of every rule
// of the check; "" keeps each rule's own. The promises of [Guard.Check] hold here too.
func (c *Check) Allow(v adapter.View, subject string) Answer { return c.madeGuard().check(v, subject) }

// Rules returns copies of the check's rules.
func (c *Check) Rules() []Rule { return c.madeGuard().Rules() }

// Reset does what [Guard.Reset] does for the check's rules.
func (c *Check) Reset(ctx context.Context, subject string) (changed bool, err error) {
	return c.madeGuard().Reset(ctx, subject)
}

// madeGuard returns the guard of the rules, or nil if no Limiter made the check.
func (c *Check) madeGuard() *Guard {
	if c == nil {
		return nil
	}
	return c.guard
}
