package algorithm

import (
	"bytes"
	"slices"

	"github.com/accesslimit/accesslimit/core/internal/cowmap"
)

// OverrideQuery asks, within one call, for the override that one rule may have for its subject. All
// counters of the rule in the call share it. The store that decides the call fills in what it
// found.
type OverrideQuery struct {
	Key   []byte // of the override; valid during the call only
	Limit *Limit // the rule's own
	Found FoundOverride
	limit *Limit // in place of the rule's own; nil unless the override is an OverrideLimit
}

// FoundOverride is the result of a store's search for an override. The zero value means that there
// is none, or that it has ended.
type FoundOverride struct {
	What       OverrideKind
	Ends       int64 // microseconds since the epoch; 0: it does not end by itself
	Max, Burst int64 // of an OverrideLimit
}

// FoundBy returns what a store finds when it reads this override for a rule with the limit own. The
// override must not have ended.
func (o *Override) FoundBy(own *Limit) FoundOverride {
	switch _, err := o.For(own); err {
	case nil:
		return FoundOverride{What: o.What, Ends: o.Ends, Max: o.Max, Burst: o.Burst}
	case ErrOverrideSpan:
		return FoundOverride{What: OverrideOfOther}
	default:
		return FoundOverride{What: OverrideInvalid}
	}
}

// The kinds of overrides that a store finds and ignores.
const (
	// OverrideOfOther is an override that was made for another window or algorithm.
	OverrideOfOther OverrideKind = 4
	// OverrideInvalid is a value that this library did not write.
	OverrideInvalid OverrideKind = 5
)

// BlockedFor returns what a store finds if a subject is blocked for lasts microseconds from now on,
// or [Forever].
func BlockedFor(lasts, now int64) FoundOverride {
	found := FoundOverride{What: OverrideBlocked}
	if lasts < Forever {
		found.Ends = now + lasts
	}
	return found
}

// Lasts returns for how many more microseconds the override holds, or [Forever].
func (f *FoundOverride) Lasts(now int64) int64 {
	if f.Ends == 0 {
		return Forever
	}
	return f.Ends - now
}

// Forever is the RetryAfter of a call that never passes, however long it waits: its subject is
// blocked without an end, or its cost is above a limit in force.
const Forever = never

// Ask resets q for another call. It empties the Key, but keeps its memory.
func (q *OverrideQuery) Ask(own *Limit) {
	q.Key, q.Limit, q.Found, q.limit = q.Key[:0], own, FoundOverride{}, nil
}

// Answer records what a store found for q. It reports whether found is valid.
func (q *OverrideQuery) Answer(found FoundOverride) bool {
	q.Found, q.limit = found, nil
	if found.What == OverrideLimit {
		q.limit = inForce(q.Limit, found.Max, found.Burst)
		return q.limit != nil
	}
	return found.What <= OverrideInvalid
}

// Blocks reports whether the subject is blocked.
func (q *OverrideQuery) Blocks() bool { return q.Found.What == OverrideBlocked }

// Verdict returns the verdict on the rule's own limit if the subject is blocked.
func (q *OverrideQuery) Verdict(now int64) Verdict {
	return Verdict{At: now, RetryAfter: q.Found.Lasts(now), Blocked: true}
}

// lifts reports whether the override takes all limits of the rule out of the decision.
func (q *OverrideQuery) lifts() bool { return q.Found.What == OverrideUnlimited || q.Blocks() }

// made caches the limits that overrides set, and the limits of counters that several rules share,
// because every call needs them. Beyond maxMade, limits are made anew each time.
var made cowmap.Map[madeLimit, *Limit]

type madeLimit struct {
	span       string
	max, burst int64
}

const maxMade = 1000

// Numbered returns a limit with other numbers, or nil if it cannot be counted exactly. It is cached.
func (l *Limit) Numbered(maxPermits, burst int64) *Limit { return inForce(l, maxPermits, burst) }

// inForce returns the rule's own limit with the numbers of an override, or nil if it cannot be
// counted exactly.
func inForce(own *Limit, maxPermits, burst int64) *Limit {
	key := madeLimit{own.Span(), maxPermits, burst}
	if l, ok := made.Get(key); ok {
		return l
	}
	l, err := own.With(maxPermits, burst)
	if err != nil {
		return nil
	}
	held, _ := made.Add(key, &l, maxMade)
	return held
}

// MayHaveOverrides reports whether an override may change the limits of any of these counters.
func MayHaveOverrides(counters []Counter) bool {
	for i := range counters {
		if counters[i].Override != nil {
			return true
		}
	}
	return false
}

// AppendQueries appends the queries of a call, each once, in the order of the counters.
func AppendQueries(room []*OverrideQuery, counters []Counter) []*OverrideQuery {
	for i := range counters {
		if q := counters[i].Override; q != nil && !slices.Contains(room, q) {
			room = append(room, q)
		}
	}
	return room
}

// SameOverride reports whether the same override governs both counters in the same way.
func (c *Counter) SameOverride(other *Counter) bool {
	a, b := c.Override, other.Override
	if a == nil || b == nil {
		return a == b
	}
	return c.Own == other.Own && c.CountsIfOverridden == other.CountsIfOverridden && bytes.Equal(a.Key, b.Key) && a.Limit.Equal(b.Limit)
}

// InForce reports whether overrides let the counter take part in the decision.
func (c *Counter) InForce() bool {
	q := c.Override
	return q == nil || !q.lifts() && (!c.CountsIfOverridden || q.Found.What == OverrideLimit)
}

// Request is what a call asks of its counters.
type Request uint8

// The requests.
const (
	ToDecide       Request = iota // over the whole cost
	ToChargeUp                    // up to the cost
	ToReserve                     // the cost, for a later turn
	ToChargeInDebt                // the cost, whether it fits or not
)

// costly reports whether the cost is more than the counter ever lets through.
func (c *Counter) costly(r Request) bool {
	return c.Override != nil && (r == ToDecide || r == ToReserve) && c.InForce() && c.Cost > c.Limit.Most(r == ToReserve)
}

// LargestCost stands for the largest cost that fits into all limits of the rule. It is for counters
// that may have an override, because their limits are known only when the store has answered.
const LargestCost = 1<<63 - 1

// Obey sets the limits and costs of counters according to the overrides that were found.
func Obey(counters []Counter) {
	for i := range counters {
		if c := &counters[i]; c.Override != nil && c.Own && c.Override.limit != nil {
			c.Limit = c.Override.limit
		}
	}
	for i := range counters {
		if c := &counters[i]; c.Cost == LargestCost && c.Override != nil && c.InForce() {
			c.Override.lower(counters)
		}
	}
}

// lower replaces the cost LargestCost of counters with the largest cost that all of them allow.
func (q *OverrideQuery) lower(counters []Counter) {
	cost := int64(LargestCost)
	ofRule := func(c *Counter) bool { return c.Override == q && c.Cost == LargestCost && c.InForce() }
	for i := range counters {
		if c := &counters[i]; ofRule(c) {
			cost = min(cost, c.Limit.Max)
		}
	}
	for i := range counters {
		if c := &counters[i]; ofRule(c) {
			counters[i].Cost = cost
		}
	}
}

// AppliedOverrides says which counters of a call are left to decide after its overrides were applied.
type AppliedOverrides struct {
	request Request
	blocked bool // the call is refused because one of its subjects is blocked, and nothing is charged
	stopped bool // the call is refused for a block or for its cost, and nothing is charged
}

// ApplyOverrides applies the overrides that were found, and returns what is left to decide.
func ApplyOverrides(counters []Counter, request Request) AppliedOverrides {
	Obey(counters)
	r := AppliedOverrides{request: request}
	for i := range counters {
		if c := &counters[i]; c.Override != nil && !c.Lenient {
			r.blocked = r.blocked || c.Override.Blocks()
			r.stopped = r.stopped || r.blocked || c.costly(request)
		}
	}
	return r
}

// Decides reports whether the counter at i takes part in the decision.
func (r *AppliedOverrides) Decides(counters []Counter, i int) bool {
	return !r.stopped && counters[i].InForce() && !r.ruleTooCostly(counters, counters[i].Override)
}

// ruleTooCostly reports whether the cost for a rule is more than one of its limits ever lets
// through.
func (r *AppliedOverrides) ruleTooCostly(counters []Counter, q *OverrideQuery) bool {
	return q != nil && slices.ContainsFunc(counters, func(c Counter) bool { return c.Override == q && c.costly(r.request) })
}

// Answer returns the verdict on a counter that does not take part in the decision: its subject is
// blocked, or the cost never fits, or the counter is not asked.
func (r *AppliedOverrides) Answer(c *Counter, now int64) Verdict {
	switch {
	case c.Override != nil && c.Override.Blocks() && c.Own:
		return c.Override.Verdict(now)
	case !r.blocked && c.costly(r.request):
		return Verdict{At: now, RetryAfter: Forever, Costly: true}
	default:
		return Verdict{At: now, From: FromNobody}
	}
}

// Overrule makes the verdicts on a call that several shards answered the same as if one shard had
// answered. If the counters on one shard stop the call, no other counter takes part in the
// decision. Verdicts on counters for which the store could not answer stay as they are.
func Overrule(counters []Counter, verdicts []Verdict) {
	if !MayHaveOverrides(counters) {
		return
	}
	r := ApplyOverrides(counters, ToDecide)
	for i := range counters {
		if v := &verdicts[i]; r.stopped && v.Err == nil && v.Ended == nil {
			part := v.Part
			*v = r.Answer(&counters[i], v.At)
			v.Part = part
		}
	}
}

// answerSkipped replaces the verdicts on the counters that took no part in the decision. It reports
// whether the call passes because no counter took part.
func answerSkipped(counters []Counter, verdicts []Verdict, now int64, request Request) (lifted bool) {
	if !MayHaveOverrides(counters) {
		return false
	}
	r := ApplyOverrides(counters, request)
	lifted = !r.stopped
	for i := range counters {
		if r.Decides(counters, i) {
			lifted = false
		} else {
			verdicts[i] = r.Answer(&counters[i], now)
		}
	}
	return lifted
}
