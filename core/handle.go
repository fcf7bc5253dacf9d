package core

import (
	"context"
	"strings"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
	"github.com/accesslimit/accesslimit/core/internal/engine"
	"github.com/accesslimit/accesslimit/core/internal/memstore"
	"github.com/accesslimit/accesslimit/core/internal/rediskey"
)

// handle is what a [Counter], [Pacer], [Log] or [Slots] prepares once for all its calls.
type handle struct {
	front   *front
	memory  *memstore.Store // nil with Redis
	keyHead string
	named   *namedRule  // the handle as a rule
	counted engine.Rule // what the engine knows of it
	limits  []*preparedLimit
	single  *ruleLimit // the only limit, if a call needs no look at others or at the policy
	kind    *handleKind
	policy  StorePolicy
	bills   BillTerms
	wrong   error // why the handle cannot have such bills
}

// handleKind is which limits a [Counter], [Pacer], [Log] or [Slots] can have.
type handleKind struct {
	accepts func(*Limit) string // why a limit does not suit the handle, or ""
	one     bool                // a call has one limit, also by a mark
}

// newHandle checks a name and its limits.
func (f *front) newHandle(name string, kind *handleKind, limits ...Limit) (*handle, error) {
	switch {
	case f == nil:
		return nil, errNoLimiter
	case name == "":
		return nil, &RuleError{Field: "name", Value: name, Why: "must say what is limited"}
	}
	h := &handle{front: f, memory: f.Memory, keyHead: f.KeyHead, kind: kind, bills: BillTerms{}.filled()}
	h.named = &namedRule{name: strings.Clone(name), tally: f.tallies.OfHandle(name), accepts: kind.accepts, one: kind.one, marks: f.Marks.Rule(name)}
	h.named.prepareAll = plainLimits
	f.Marks.Start()
	h.counted = engine.Rule{Name: h.named.name}
	h.policy.apply(&h.counted)
	for _, limit := range limits {
		prepared := h.prepare(prepare(limit))
		if prepared.err != nil {
			return nil, prepared.err
		}
		h.add(prepared)
	}
	if wrong := checkAlso(limits[0], limits[1:]); wrong != nil {
		wrong[0].Rule = name
		return nil, wrong[0]
	}
	if len(h.limits) == 1 {
		h.single = h.named.limits[0]
	}
	f.registry.noteHandle(h)
	return h, nil
}

// add adds a limit, with the constant part of its keys.
func (h *handle) add(prepared *preparedLimit) {
	q := prepared.plain
	q.counted.KeyTail = rediskey.LimitTail(h.named.name, false, &prepared.compiled)
	h.limits = append(h.limits, prepared)
	h.named.limits = append(h.named.limits, &q)
	h.counted.Limits = append(h.counted.Limits, &q.counted)
}

// prepare returns the limit, or its error if the handle cannot use it.
func (h *handle) prepare(of *preparedLimit) *preparedLimit {
	if wrong, ok := of.err.(*RuleError); ok {
		named := *wrong
		named.Rule = h.named.name
		return &preparedLimit{err: &named}
	}
	if why := h.kind.accepts(&of.limit); why != "" && of.limit != Unlimited {
		return &preparedLimit{err: &RuleError{Rule: h.named.name, Field: "Limit", Value: of.limit, Why: why}}
	}
	return of
}

// substitute returns a limit to stand in place of the handle's first one, or its error. It must not
// have the counter of a further limit, which each call would then charge twice.
func (h *handle) substitute(limit Limit) *preparedLimit {
	own := h.prepare(h.front.limits.of(limit))
	if own.err != nil {
		return own
	}
	for _, further := range h.limits[1:] {
		if own.limit.sharesCounter(further.limit) {
			return &preparedLimit{err: &RuleError{Rule: h.named.name, Field: "Limit", Code: codeSameCounter, Value: own.limit, Why: sameCounter}}
		}
	}
	return own
}

// withPolicy returns the handle with a store policy.
func (h *handle) withPolicy(policy StorePolicy) *handle {
	if h == nil {
		return nil
	}
	changed := *h
	changed.policy = policy
	policy.apply(&changed.counted)
	if policy.inside().CountsLocally() { // which may be wrong for the limit
		changed.single = nil
	}
	return &changed
}

// plainLimits returns limits as a handle counts by them.
func plainLimits(all []*preparedLimit) (limits []*ruleLimit) {
	for _, of := range all {
		limits = append(limits, &of.plain)
	}
	return limits
}

// handleCall is one call of a handle.
type handleCall struct {
	*handle
	own      *preparedLimit // in place of the handle's first limit, or nil
	subject  string
	note     string // of a Log
	n        int
	charging chargeMode
	above    int // chargeInDebt: how much was not charged to some limit, because it exceeds the bound of the debt
}

// chargeMode is what a call of a handle charges.
type chargeMode uint8

const (
	chargeNothing chargeMode = iota // it only looks
	chargeAll                       // n, or nothing
	chargeUpTo                      // as much of n as fits
	chargeInDebt                    // n, whether it fits or not
	chargeBilled                    // n, or nothing; then it opens a bill
)

// ask decides the call, writes the decision into d, the zero Decision, and reports it.
func (q *handleCall) ask(ctx context.Context, d *Decision) error {
	err := q.askQuietly(ctx, d)
	if err == nil && q.charging != chargeNothing && q.front.options.OnDecision != nil {
		q.front.options.reportDirect(ctx, d, nil)
	}
	return err
}

// askQuietly is ask without the report.
func (q *handleCall) askQuietly(ctx context.Context, d *Decision) error {
	if err := q.check(ctx); err != nil {
		return err
	}
	c := q.front.directs.open()
	err := c.process(ctx, q, d)
	q.front.directs.close(c)
	return err
}

// check returns what is wrong with the call, or nil.
func (q *handleCall) check(ctx context.Context) error {
	switch {
	case q.handle == nil:
		return errZeroHandle
	case q.wrong != nil:
		return q.wrong
	case q.own != nil && q.own.err != nil:
		return q.own.err
	case q.subject == "":
		return noSubject(q.named.name)
	case q.n < 0:
		return wrongArgument(q.named.name, "n", q.n, "must not be negative")
	case q.policy.inside().CountsLocally():
		if why := q.checkPolicy(); why != "" {
			return &RuleError{Rule: q.named.name, Field: "StorePolicy", Value: q.policy, Why: why}
		}
	}
	if q.mayOwe() {
		if err := q.checkDebt(); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// mayOwe reports whether the call may put a limit into debt, now or when its bill is settled.
func (q *handleCall) mayOwe() bool {
	return q.charging == chargeInDebt || q.charging == chargeBilled
}

// checkDebt returns a *RuleError if one of the limits cannot be in debt, or is leased by a rule. Which
// rules are attached is known only now.
func (q *handleCall) checkDebt() error {
	for i := range q.limits {
		limit := q.limit(i)
		if limit.limit != Unlimited && !limit.compiled.CanBeInDebt() {
			return &RuleError{Rule: q.named.name, Field: "Limit", Value: limit.limit, Why: notSettleable}
		}
		if q.front.registry.names.Leases(q.named.name, limit.limit) {
			return &RuleError{
				Rule: q.named.name, Field: "Lease", Code: codeLeaseAndEstimate, Value: limit.limit,
				Why: "must not be set in a rule of this name and limit: leased permits would be used while the counter is in debt",
			}
		}
	}
	return nil
}

// checkPolicy returns what is wrong with counting locally, or "".
func (q *handleCall) checkPolicy() string {
	if why := q.policy.inside().Check(); why != "" {
		return why
	}
	for i := range q.limits {
		if why := q.limit(i).checkPolicy(q.policy); why != "" {
			return why
		}
	}
	return ""
}

// limit returns the limit at i: the handle's, or the one in place of its first.
func (q *handleCall) limit(i int) *preparedLimit {
	if i == 0 && q.own != nil {
		return q.own
	}
	return q.limits[i]
}

func (q *handleCall) unlimited() bool { return q.limit(0).limit.unlimited() }

// countedAt returns the limit at i as calls count by it.
func (q *handleCall) countedAt(i int) *ruleLimit {
	if q.own == nil {
		return q.named.limits[i]
	}
	return q.named.limitAt(i, &q.own.plain)
}

// key returns the key of the counter at i.
func (q *handleCall) key(i int) []byte { return q.keyOf(q.countedAt(i).counted.Compiled) }

// keyOf returns the key of the subject's counter of a limit.
func (q *handleCall) keyOf(limit *algorithm.Limit) []byte {
	return rediskey.AppendLimit(nil, q.keyHead, q.subject, q.named.name, false, limit)
}
