package operate

import (
	"context"
	"errors"
	"fmt"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/internal/marks"
)

// maxMarkedSubject is the length of the longest subject of an act, in bytes.
const maxMarkedSubject = 1_024

// checkMarked returns what is wrong with a subject that an operator marks, or nil. Rules may have banned
// others, whose marks can be removed.
func (o *Operator) checkMarked(ctx context.Context, name, subject string) error {
	if err := o.check(ctx, name, subject); err != nil {
		return err
	}
	if len(subject) > maxMarkedSubject {
		return &core.RuleError{Rule: name, Field: "subject", Value: fmt.Sprint(len(subject), " bytes"), Why: "must have at most 1024 bytes"}
	}
	if why := marks.CheckNetwork(subject, o.parts.ClientIPs.IPv6Prefix()); why != nil {
		return &core.RuleError{Rule: name, Field: "subject", Value: subject, Why: why.Error()}
	}
	return nil
}

// mark writes a mark, and returns the one that was there, or nil. Wrong limits, an end that has passed,
// and a full table are a *core.RuleError.
func (o *Operator) mark(ctx context.Context, m marks.Mark, span int64) (before *marks.Mark, err error) {
	before, err = o.parts.Marks.Act(ctx, m, span)
	return before, wrongMark(&m, err)
}

// wrongMark returns the error about an act, for the operator.
func wrongMark(m *marks.Mark, err error) error {
	switch wrong := (*core.RuleError)(nil); {
	case errors.Is(err, marks.ErrEnded):
		return &core.RuleError{Rule: m.Rule, Field: "Override.Until", Value: timeOf(m.Until), Why: overAlready}
	case errors.Is(err, marks.ErrFull):
		return &core.RuleError{Rule: m.Rule, Field: "overrides", Value: marks.Most, Why: "have reached this bound, with the bans: remove some first"}
	case errors.As(err, &wrong):
		of := *wrong
		of.Rule, of.Field = m.Rule, "Override.Limits"
		return &of
	}
	return err
}

// failedAct returns the error of an act that Redis did not confirm.
func (o *Operator) failedAct(name string, err error) error {
	err = o.front.Failed(name, err)
	var failed *core.StoreError
	if !errors.As(err, &failed) {
		return err
	}
	return &core.StoreError{Class: failed.Class, Err: fmt.Errorf("%w: it holds in this process for a minute, and in others only if Redis has it", failed.Err)}
}
