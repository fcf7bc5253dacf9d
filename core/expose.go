package core

import "context"

// exposed is a context that carries the decision and the user to the handler.
type exposed struct {
	context.Context
	decision Decision
	user     string
}

type (
	decisionKey struct{}
	userKey     struct{}
)

// Value implements context.Context.
func (e *exposed) Value(key any) any {
	switch key {
	case decisionKey{}:
		return e.decision
	case userKey{}:
		if e.user != "" {
			return e.user
		}
	}
	return e.Context.Value(key)
}

// DecisionFrom returns the decision of the innermost limiter on this call, if Options.Expose is set.
// If it is not, DecisionFrom returns only decisions with the Reason [SoftExceeded]. The context is the request's own: r.Context(), c.Request.Context(), c.Request().Context(),
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
