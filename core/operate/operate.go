// Package operate is for operators. It shows what a [core.Limiter] decides, and why, and changes that
// while the service runs:
//
//	operator := operate.New(limiter)
//	list, err := operator.Top(ctx, "login", 10*time.Minute)
//	report, err := operator.Explain(ctx, operate.Call{Method: "GET", Path: "/orders", User: "alice"})
//
// [Operator.Explain] and [Operator.Inspect] report, [Operator.Rules], [Operator.Top] and
// [Operator.Bans] list, [Operator.Ban], [Operator.Reset] and [Operator.Overrides] act, and
// [Operator.Audit] shows who did what. Package console is a web page with all of this.
package operate

import (
	"context"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/internal/failure"
	"github.com/accesslimit/accesslimit/core/internal/limiter"
	"github.com/accesslimit/accesslimit/core/internal/redisstore"
)

// Operator is a [core.Limiter] as operators see it. It is safe for concurrent use. The error of all
// its methods is a *[core.RuleError] if the Limiter is nil, or was not made by core.New.
type Operator struct {
	limiter *core.Limiter
	front   limiter.Front[core.Rule] // nil without a Limiter
	parts   *limiter.Parts
}

// New returns an Operator of a Limiter. It asks nothing yet.
func New(l *core.Limiter) *Operator {
	inside := (*limiter.Limiter[core.Rule])(l)
	front := inside.Front()
	if front == nil {
		return &Operator{}
	}
	return &Operator{l, front, inside.Parts()}
}

// made returns what is wrong with the Limiter, or nil.
func (o *Operator) made() error {
	if o == nil || o.front == nil {
		return &core.RuleError{Field: "limiter", Why: limiter.NeverMade}
	}
	return nil
}

// check returns what is wrong with a call about a subject, or nil.
func (o *Operator) check(ctx context.Context, name, subject string) error {
	if err := o.made(); err != nil {
		return err
	}
	if name == "" {
		return &core.RuleError{Field: "name", Value: name, Why: "must say what is limited"}
	}
	if err := o.front.CheckSubject(name, subject); err != nil {
		return err
	}
	return ctx.Err()
}

// failedOptional returns the error for an operator who reads something that needs an optional
// right. If the right is missing, that is not a failure of the store, and off logs it once.
func (o *Operator) failedOptional(name string, err error, off func(error)) error {
	if !redisstore.IsNoPermission(err) {
		return o.front.Failed(name, err)
	}
	off(err)
	return &core.StoreError{Class: core.StoreErrorClass(failure.ClassOf(err)), Err: err}
}
