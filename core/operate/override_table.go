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

// Overrides manages the overrides under one name: limits of single subjects, which an operator sets at
// run time. They hold for all rules and handles of the name, in this process at once, and in each other
// one within a second. Get one from [Operator.Overrides]. It is a small value, and safe for concurrent
// use:
//
//	overrides, err := operate.New(limiter).Overrides("api")
//	...
//	err = overrides.Set(ctx, "user:alice", operate.Override{Limits: []core.Limit{core.PerMinute(500)}, Until: endOfMonth})
//
// A subject is the result of the rule's key function, such as user:alice; for addresses see
// [core.Limiter.IPSubject]. It may be a network, such as ip:203.0.113.0/24: then the override is for
// all callers with an address in it, whatever the rule counts by, unless a longer network has another
// one. If the subject of a call and its address both have one, a block goes before the other kinds,
// and unlimited before limits.
//
// Each change is written into the audit: see [Operator.Audit] and [WithActor]. All rules of a Prefix
// can have 100,000 overrides and bans. Bans that rules impose give way to those of operators.
//
// If an argument is wrong, the error is a *[core.RuleError]. Other errors are those of
// [core.Counter]. If Redis did not answer to Set or Remove, the change may have been made. It holds in
// this process for a minute, and it is safe to try again.
type Overrides struct {
	operator *Operator
	name     string
}

// errZeroOverrides is the error of Overrides that no Operator made.
var errZeroOverrides = &core.RuleError{Field: "overrides", Value: "zero", Why: "must be made by Operator.Overrides"}

const maxOverridePage = 1_000

// Overrides returns the overrides of a name. The name need not be known to this Limiter: another
// process may have rules of it. See [Operator.ActHint].
func (o *Operator) Overrides(name string) (Overrides, error) {
	if err := o.made(); err != nil {
		return Overrides{}, err
	}
	if name == "" {
		return Overrides{}, &core.RuleError{Field: "name", Value: name, Why: "must be that of a rule"}
	}
	return Overrides{o, strings.Clone(name)}, nil
}

// Set sets the override of a subject, in place of an earlier one. Permits that the subject has used
// before count under the override if one of its limits has the same window and algorithm.
func (o Overrides) Set(ctx context.Context, subject string, override Override) error {
	began := time.Now()
	if o.operator == nil {
		return errZeroOverrides
	}
	if err := o.operator.checkMarked(ctx, o.name, subject); err != nil {
		return err
	}
	if wrong := override.check(); wrong != nil {
		wrong.Rule = o.name
		return wrong
	}
	by, _ := actor.Of(ctx)
	override.Note = cmp.Or(override.Note, by.Note)
	before, err := o.operator.mark(ctx, override.mark(o.name, strings.Clone(subject), by.Author), 0)
	if wrong := (*core.RuleError)(nil); errors.As(err, &wrong) {
		return wrong
	}
	o.operator.parts.Audits.Acted(ctx, audit.Act{
		Began: began, What: audit.Override, Rule: o.name, Subject: subject, Before: textOf(before), After: override.String(), Note: override.Note,
	}, err == nil, err)
	return o.operator.failedAct(o.name, err)
}

// Get returns the override of a subject, and whether there is one. For an address, it is that of
// exactly this address, and not of a network.
func (o Overrides) Get(ctx context.Context, subject string) (override Override, ok bool, err error) {
	if err := o.check(ctx, subject); err != nil {
		return Override{}, false, err
	}
	found, err := o.operator.parts.Marks.Rule(o.name).Of(ctx, subject)
	if err != nil {
		return Override{}, false, o.operator.front.Failed(o.name, err)
	}
	return overrideOf(found.Other()), found.Other() != nil, nil
}

// Remove removes the override of a subject, and reports whether there was one.
func (o Overrides) Remove(ctx context.Context, subject string) (existed bool, err error) {
	began := time.Now()
	if err := o.check(ctx, subject); err != nil {
		return false, err
	}
	by, _ := actor.Of(ctx)
	m := marks.Mark{Rule: o.name, Subject: strings.Clone(subject), Kind: marks.Removed, Author: by.Author, Note: by.Note}
	before, err := o.operator.mark(ctx, m, 0)
	existed = before != nil
	o.operator.parts.Audits.Acted(ctx, audit.Act{
		Began: began, What: audit.OverrideRemoved, Rule: o.name, Subject: subject, Before: textOf(before),
	}, existed, err)
	return existed, o.operator.failedAct(o.name, err)
}

// List returns a page of at most n overrides, in the order of the bytes of their subjects. n is 1
// to 1000. For the first page, after is "". For each further page, it is the next of the previous
// page. next is "" on the last page.
//
// An override that exists from the first page to the last is on exactly one of them, whatever is
// set and removed in the meantime.
func (o Overrides) List(ctx context.Context, after string, n int) (page []Override, next string, err error) {
	switch {
	case o.operator == nil:
		return nil, "", errZeroOverrides
	case n < 1 || n > maxOverridePage:
		return nil, "", &core.RuleError{Rule: o.name, Field: "n", Value: n, Why: "must be 1 to 1000 overrides"}
	case ctx.Err() != nil:
		return nil, "", ctx.Err()
	}
	if err := o.operator.parts.Marks.Refresh(ctx); err != nil {
		return nil, "", o.operator.front.Failed(o.name, err)
	}
	for _, m := range o.operator.parts.Marks.All() {
		if m.Rule == o.name && m.Kind != marks.Banned && m.Subject > after {
			page = append(page, overrideOf(m))
		}
	}
	slices.SortFunc(page, func(a, b Override) int { return strings.Compare(a.Subject, b.Subject) })
	if len(page) > n {
		page, next = page[:n], page[n-1].Subject
	}
	return page, next, nil
}

// check returns what is wrong with a call about a subject, or nil.
func (o Overrides) check(ctx context.Context, subject string) error {
	if o.operator == nil {
		return errZeroOverrides
	}
	return o.operator.check(ctx, o.name, subject)
}

// textOf returns a mark as the audit shows it.
func textOf(m *marks.Mark) string {
	if m == nil {
		return ""
	}
	return overrideOf(m).String()
}
