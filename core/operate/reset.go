package operate

import (
	"context"

	"github.com/accesslimit/accesslimit/core"
)

// Reset forgets what a subject has used of the attached rules of a name, as [core.Guard.Reset] does
// for the rules of a Guard. It covers a rule's own limit, Also and Plans. It neither resets limits
// from LimitFor nor ends a ban (see [Operator.Unban]). It reports whether there was anything to
// forget.
//
// The error is a *[core.RuleError] if no attached rule counts by this name. The counters of handles
// have a Reset of their own. Other errors are those of [Operator.Ban].
func (o *Operator) Reset(ctx context.Context, name, subject string) (changed bool, err error) {
	if err := o.check(ctx, name, subject); err != nil {
		return false, err
	}
	changed, known, err := o.front.ResetRules(ctx, name, subject)
	if !known {
		return false, &core.RuleError{Rule: name, Field: "name", Value: name, Why: "must be the name of a rule that is attached to this Limiter"}
	}
	return changed, err
}
