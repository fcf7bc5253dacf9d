package operate

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/internal/actor"
	"github.com/accesslimit/accesslimit/core/internal/audit"
	"github.com/accesslimit/accesslimit/core/internal/marks"
)

// Mark is a ban or an override in a form that can be kept in a file: see [Operator.ExportMarks].
type Mark struct {
	// Rule is the name of the rule. Subject is the text of the subject: see [SubjectText].
	Rule    string `json:"rule"`
	Subject string `json:"subject"`
	// Kind is "banned", or what an override is: "blocked", "unlimited" or "limited".
	Kind string `json:"mark"`
	// Limits are those of a limited subject, as [ParseLimits] reads them.
	Limits string `json:"limits,omitzero"`
	// Since is when the act was done. Until is when the mark ends, or zero if it does not end by itself.
	// Both are by the clock of Redis.
	Since time.Time `json:"since,omitzero"`
	Until time.Time `json:"until,omitzero"`
	// Author and Note are those of the operator. The Note of a ban by a rule says how it came about.
	Author string `json:"author,omitzero"`
	Note   string `json:"note,omitzero"`
}

// ExportMarks returns all bans and overrides in force of the Prefix, in the order of the names of the
// rules, and then of the subjects. Errors are those of [core.Counter].
func (o *Operator) ExportMarks(ctx context.Context) (all []Mark, err error) {
	if err := o.made(); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := o.parts.Marks.Refresh(ctx); err != nil {
		return nil, o.front.Failed("marks", err)
	}
	for _, m := range o.parts.Marks.All() {
		all = append(all, Mark{m.Rule, SubjectText(m.Subject), string(m.Kind), m.Limits, timeOf(m.Since), timeOf(m.Until), m.Author, m.Note})
	}
	slices.SortFunc(all, func(a, b Mark) int {
		return cmp.Or(cmp.Compare(a.Rule, b.Rule), cmp.Compare(a.Subject, b.Subject), cmp.Compare(a.Kind, b.Kind))
	})
	return all, nil
}

// CheckMark returns what is wrong with a mark that is to be imported, as a *[core.RuleError], or nil.
func (o *Operator) CheckMark(ctx context.Context, m Mark) error {
	_, err := o.imported(ctx, m)
	return err
}

// ImportMarks sets bans and overrides now, in place of those that are there. The author is that of
// [WithActor], and so is the note of a mark that has none. A mark keeps its end; ended is the number of
// those that have ended and were left out, and set the number of the others.
//
// If one of them is wrong, none is set, and the error is that of [Operator.CheckMark]. Other errors are
// those of [Overrides]. After an error, it is safe to try again.
func (o *Operator) ImportMarks(ctx context.Context, all []Mark) (set, ended int, err error) {
	if err := o.made(); err != nil {
		return 0, 0, err
	}
	checked := make([]marks.Mark, len(all))
	for i := range all {
		if checked[i], err = o.imported(ctx, all[i]); err != nil {
			return 0, 0, err
		}
	}
	for _, m := range checked {
		switch err := o.importMark(ctx, m); {
		case errors.Is(err, marks.ErrEnded):
			ended++
		case err != nil:
			return set, ended, err
		default:
			set++
		}
	}
	return set, ended, nil
}

// imported returns the mark that is written for m.
func (o *Operator) imported(ctx context.Context, m Mark) (made marks.Mark, err error) {
	kind, check := marks.Kind(m.Kind), o.checkMarked
	if kind == marks.Banned { // perhaps by a rule
		check = o.check
	}
	subject, err := o.Subject(m.Subject)
	if err == nil {
		err = check(ctx, m.Rule, subject)
	}
	if err != nil {
		return made, err
	}
	wrong := func(field string, value any, why string) error {
		return &core.RuleError{Rule: m.Rule, Field: field, Value: value, Why: why}
	}
	override := Override{Unlimited: kind == marks.Unlimited, Blocked: kind == marks.Blocked || kind == marks.Banned, Until: m.Until, Note: m.Note}
	switch {
	case kind == marks.Limited:
		if override.Limits, err = ParseLimits(m.Limits); err == nil {
			_, err = o.front.CompileLimits(m.Limits)
		}
	case !override.Unlimited && !override.Blocked:
		return made, wrong("mark", m.Kind, "must be banned, blocked, unlimited or limited")
	case m.Limits != "":
		return made, wrong("limits", m.Limits, "go with the mark limited only")
	case kind == marks.Banned && m.Until.IsZero():
		return made, wrong("until", m.Until, "must be set: a ban has an end")
	}
	if err != nil {
		return made, wrong("limits", m.Limits, "cannot be read: "+reasonOf(err))
	}
	if bad := override.check(); bad != nil {
		return made, wrong(strings.ToLower(strings.TrimPrefix(bad.Field, "Override.")), bad.Value, bad.Why)
	}
	by, _ := actor.Of(ctx)
	override.Note = cmp.Or(m.Note, by.Note)
	made = override.mark(strings.Clone(m.Rule), strings.Clone(subject), by.Author)
	made.Kind = kind
	return made, nil
}

// reasonOf returns why limits are wrong.
func reasonOf(err error) string {
	if wrong := (*core.RuleError)(nil); errors.As(err, &wrong) {
		return wrong.Why
	}
	return err.Error()
}

// importMark writes a mark, and the audit of it. The error is marks.ErrEnded if its end has passed.
func (o *Operator) importMark(ctx context.Context, m marks.Mark) error {
	began := time.Now()
	before, err := o.parts.Marks.Act(ctx, m, 0)
	if errors.Is(err, marks.ErrEnded) {
		return err
	}
	act := audit.Act{Began: began, What: audit.Override, Rule: m.Rule, Subject: m.Subject, Before: textOf(before), After: textOf(&m), Note: m.Note}
	if m.Kind == marks.Banned {
		act.What, act.Before, act.After = audit.Ban, "", "banned until "+timeOf(m.Until).Format(time.RFC3339Nano)
	}
	if err = wrongMark(&m, err); !errors.As(err, new(*core.RuleError)) {
		o.parts.Audits.Acted(ctx, act, err == nil, err)
	}
	return o.failedAct(m.Rule, err)
}
