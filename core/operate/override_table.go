package operate

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/internal/actor"
	"github.com/accesslimit/accesslimit/core/internal/algorithm"
	"github.com/accesslimit/accesslimit/core/internal/audit"
	"github.com/accesslimit/accesslimit/core/internal/overrides"
	"github.com/accesslimit/accesslimit/core/internal/rediskey"
)

// Overrides manages the overrides of one name: limits of single subjects, which an operator sets at
// run time. The next call in any process obeys. Get one from [Operator.Overrides]. It is a small
// value, and safe for concurrent use:
//
//	overrides, err := operate.New(limiter).Overrides("api")
//	...
//	err = overrides.Set(ctx, "user:alice", operate.Override{Max: 500, Until: endOfMonth, Note: "contract 17"})
//
// Each change is written into the audit: see [Operator.Audit] and [WithActor]. A subject is the
// result of the rule's key function, such as user:alice; for addresses see [core.Limiter.IPSubject].
// It has at most 1024 bytes.
//
// If an argument is wrong, the error is a *[core.RuleError]. Other errors are those of
// [core.Counter]. If Redis did not answer to Set or Remove, the change may have been made, and it
// is safe to try again. If the change was to lift a block, the error says which processes still
// refuse the subject.
type Overrides struct {
	operator *Operator
	name     string
	table    overrides.Table
}

// errZeroOverrides is the error of Overrides that no Operator made.
var errZeroOverrides = &core.RuleError{Field: "overrides", Value: "zero", Why: "must be made by Operator.Overrides"}

const (
	maxOverridePage    = 1_000
	maxOverrideSubject = 1_024
)

// Overrides returns the overrides of a name. The Limiter must have a rule of that name with
// Overrides set, which is attached, or a handle of that name made by WithOverrides. Otherwise the
// error is a *[core.RuleError].
func (o *Operator) Overrides(name string) (Overrides, error) {
	if err := o.made(); err != nil {
		return Overrides{}, err
	}
	if name == "" {
		return Overrides{}, &core.RuleError{Field: "name", Value: name, Why: "must be that of a rule"}
	}
	if _, err := o.front.Overridable(name); err != nil {
		return Overrides{}, err
	}
	name = strings.Clone(name)
	return Overrides{o, name, o.parts.Overrides.Of(name)}, nil
}

// Set sets the override of a subject, in place of an earlier one. Permits that the subject has used
// before count under the override, and those that it uses under the override count after it. If the
// rate of a TokenBucket changes, they count as between plans: see Rule.Plan. A rule can have 100,000
// overrides; one more is a *[core.RuleError]. Without Redis, all rules together can have as many.
func (o Overrides) Set(ctx context.Context, subject string, override Override) error {
	began := time.Now()
	if err := o.check(ctx, subject); err != nil {
		return err
	}
	if wrong := override.check(); wrong != nil {
		wrong.Rule = o.name
		return wrong
	}
	by, _ := actor.Of(ctx)
	if override.Note == "" {
		override.Note = by.Note
	}
	stored, err := override.stored(o.operator.front, o.name)
	if err != nil {
		return err
	}
	stored.Author, override.Burst = by.Author, int(stored.Burst)
	before, existed, err := o.table.Set(ctx, subject, &stored)
	switch {
	case errors.Is(err, overrides.ErrEnded):
		return &core.RuleError{Rule: o.name, Field: "Override.Until", Value: override.Until, Why: overAlready}
	case errors.Is(err, overrides.ErrTooMany):
		return &core.RuleError{
			Rule: o.name, Field: "overrides", Value: o.operator.parts.Overrides.Most,
			Why: "have reached this bound: remove some first. Those that ended or were removed in the last hour may still count",
		}
	}
	o.operator.parts.Known.NoteOverride(o.key(subject), &stored, err)
	o.operator.parts.Audits.Acted(ctx, audit.Act{
		Began: began, What: audit.Override, Rule: o.name, Subject: subject,
		Before: o.text(before, existed), After: override.String(), Note: override.Note,
	}, err == nil, err)
	if err = o.operator.front.Failed(o.name, err); !override.Blocked {
		err = o.operator.stillHolds(err, "an earlier block", subject, o.key(subject))
	}
	return err
}

// Get returns the override of a subject, and whether there is one.
func (o Overrides) Get(ctx context.Context, subject string) (override Override, ok bool, err error) {
	if err := o.check(ctx, subject); err != nil {
		return Override{}, false, err
	}
	text, ok, err := o.table.Get(ctx, subject)
	if err != nil || !ok {
		return Override{}, false, o.operator.front.Failed(o.name, err)
	}
	return readOverride(subject, text, o.own()), true, nil
}

// Remove removes the override of a subject, and reports whether there was one.
func (o Overrides) Remove(ctx context.Context, subject string) (existed bool, err error) {
	began := time.Now()
	if err := o.check(ctx, subject); err != nil {
		return false, err
	}
	before, existed, err := o.table.Remove(ctx, subject)
	o.operator.parts.Known.NoteOverride(o.key(subject), nil, err)
	o.operator.parts.Audits.Acted(ctx, audit.Act{
		Began: began, What: audit.OverrideRemoved, Rule: o.name, Subject: subject, Before: o.text(before, existed),
	}, existed, err)
	return existed, o.operator.stillHolds(o.operator.front.Failed(o.name, err), "a block", subject, o.key(subject))
}

// List returns a page of at most n overrides, in the order of the bytes of their subjects. n is 1
// to 1000. For the first page, after is "". For each further page, it is the next of the previous
// page. next is "" on the last page. A page may have fewer than n overrides, or none, though others
// follow.
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
	entries, next, err := o.table.List(ctx, after, n)
	if err != nil {
		return nil, "", o.operator.front.Failed(o.name, err)
	}
	own := o.own()
	for _, e := range entries {
		page = append(page, readOverride(e.Subject, e.Text, own))
	}
	return page, next, nil
}

// check returns what is wrong with a call about a subject, or nil.
func (o Overrides) check(ctx context.Context, subject string) error {
	if o.operator == nil {
		return errZeroOverrides
	}
	if err := o.operator.front.CheckSubject(o.name, subject); err != nil {
		return err
	}
	if len(subject) > maxOverrideSubject {
		return &core.RuleError{
			Rule: o.name, Field: "subject", Value: fmt.Sprint(len(subject), " bytes"), Why: "must have at most 1024 bytes to be listed",
		}
	}
	return ctx.Err()
}

// own returns the rule's own limit, which a [core.RuleSet] may replace, or nil if no rule with the
// name has overrides any more.
func (o Overrides) own() *algorithm.Limit {
	own, err := o.operator.front.Overridable(o.name)
	if err != nil {
		return nil
	}
	return own
}

// text returns a stored override as the audit shows it.
func (o Overrides) text(stored string, existed bool) string {
	if !existed {
		return ""
	}
	return readOverride("", stored, o.own()).String()
}

// key returns the key of a subject's override.
func (o Overrides) key(subject string) []byte {
	return rediskey.Append(nil, o.operator.parts.KeyHead, subject, rediskey.OverrideTail(o.name))
}
