package core

import (
	"context"
	"slices"
)

// exposed is a context that carries the decision and the user to the handler.
type exposed struct {
	context.Context
	decision Decision
	user     string
}

type (
	decisionKey struct{}
	userKey     struct{}
	exposedKey  struct{}
)

// Value implements context.Context.
func (e *exposed) Value(key any) any {
	switch key {
	case decisionKey{}:
		return e.decision
	case exposedKey{}:
		return e
	case userKey{}:
		if e.user != "" {
			return e.user
		}
	}
	return e.Context.Value(key)
}

// inside returns the decision that handlers find if a middleware inside another one lets the call
// pass. If the outer one found a soft limit exceeded, that stays the decision, because handlers look
// for it.
func (d Decision) inside(ctx context.Context) Decision {
	outer, _ := ctx.Value(exposedKey{}).(*exposed)
	if outer == nil || outer.decision.Reason != SoftExceeded || d.Reason == SoftExceeded {
		return d
	}
	both := outer.decision
	both.All = slices.Concat(both.each(), d.each())
	return both
}

// each returns the decisions of all limits.
func (d Decision) each() []Decision {
	if d.All != nil {
		return d.All
	}
	return []Decision{d}
}

// DecisionFrom returns the decision of the innermost middleware on this call, if Options.Expose is
// set. A decision of any middleware with the Reason [SoftExceeded] goes before it, even without
// Expose. If that middleware is outside of the innermost one, All has the limits of both. The
// context is the request's own: r.Context(), c.Request.Context(), c.Request().Context(),
// c.UserContext(), or gRPC's ctx.
func DecisionFrom(ctx context.Context) (Decision, bool) {
	d, ok := ctx.Value(decisionKey{}).(Decision)
	return d, ok
}

// UserFrom returns the user that Options.Identify found for this call, if Options.Expose is set and
// a rule asked for the user.
func UserFrom(ctx context.Context) (string, bool) {
	user, ok := ctx.Value(userKey{}).(string)
	return user, ok
}
