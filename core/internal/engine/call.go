package engine

import (
	"github.com/accesslimit/accesslimit/core/internal/algorithm"
	"github.com/accesslimit/accesslimit/core/internal/marks"
)

// Call is one call to decide. It comes from a pool, so it keeps its memory: see Clear. Its limits,
// their counters and the store's verdicts on them have the same indexes. It is not safe for
// concurrent use.
type Call struct {
	engine   *Engine
	observer Observer
	id       uint64 // of its first charge; unique as long as this object lives

	limits []CallLimit
	op     algorithm.Op

	costly Costly // the zero Costly if the cost can fit
	state
	holder string     // names this call's slots of Concurrency, once it needs one
	merged []*Applied // the lists of CallLimit.Merged, one after the other
	marked []*Applied // the rules whose subjects are blocked or banned
	failed error      // see Fail
}

// state is what is known of a call.
type state struct {
	fit       bool // the store answered for all counters, and the call fits in each
	charging  bool // the call was to be charged, and not only looked at
	passed    bool // the call was to be charged, and was allowed: by the store, or because it failed
	hasSoft   bool // a soft rule was added
	hasCostly bool // one of the limits is costly
	warns     bool // a rule with Warn was added
	looksOnly bool // see LookOnly
	anyNear   bool // one of the limits may be nearly used up, which is rare
	refused   bool // the subject of a rule that is not soft is blocked or banned
}

// Applied is a rule that applies to a call, with the call's subject, cost and limit under that
// rule. The caller fills it in, and keeps it until Clear.
type Applied struct {
	Rule *Rule
	// At is the caller's number of the rule.
	At      int
	Subject []byte
	Cost    int64 // algorithm.LargestCost stands for the largest cost that fits
	// Own is the limit of this subject, which replaces the rule's own. It is nil if the rule does not
	// count the call, because the subject is unlimited or the call costs nothing.
	Own *Limit
	// Instead are the limits that a mark puts in place of all limits of the rule, or nil.
	Instead []*Limit
	// Mark is the mark of the subject, or nil, and Lasts how much longer it holds, in microseconds, or
	// algorithm.Forever.
	Mark  *marks.Mark
	Lasts int64
	// Reserves reports whether the cost is reserved for a later turn at a bucket. It may then
	// exceed the bucket.
	Reserves bool
	// InDebt reports whether the cost is charged even if it does not fit. It may then exceed the
	// limits.
	InDebt bool
	// Personal reports whether the subject depends on who calls.
	Personal bool
	Note     string // for algorithms that keep notes
}

// Counts reports whether the limits of the rule count the call.
func (a *Applied) Counts() bool { return a.Own != nil || a.Instead != nil }

// count returns how many limits apply to the call.
func (a *Applied) count() int {
	if a.Instead != nil {
		return len(a.Instead)
	}
	return len(a.Rule.Limits)
}

// limit returns the limit at n that applies to the call.
func (a *Applied) limit(n int) *Limit {
	switch {
	case a.Instead != nil:
		return a.Instead[n]
	case n == 0 && a.Own != nil:
		return a.Own
	default:
		return a.Rule.Limits[n]
	}
}

// KeepsNotes reports whether one of the limits that may be charged keeps notes.
func (a *Applied) KeepsNotes() bool {
	return a.anyLimit(func(p *algorithm.Properties) bool { return p.Notes })
}

// TakesSlots reports whether one of the limits that may be charged has slots.
func (a *Applied) TakesSlots() bool {
	return a.anyLimit(func(p *algorithm.Properties) bool { return p.Slots })
}

// anyLimit reports whether one of the limits that may be charged is such a limit.
func (a *Applied) anyLimit(is func(*algorithm.Properties) bool) bool {
	for n := 0; n < a.count() && a.Counts(); n++ {
		if is(a.limit(n).Compiled.Properties()) {
			return true
		}
	}
	return false
}

// Costly is a limit into which the cost of a call can never fit.
type Costly struct {
	By   *Applied // its rule
	N    int      // its index among those of the rule
	At   int      // its index in the call, or -1 if the store was not asked about it
	Most int64    // the largest cost that ever fits into it
}

// CallLimit is a limit of a call, or a mark that refuses it.
type CallLimit struct {
	*Applied
	Limit *Limit // for a mark, the rule's own
	N     int    // its index among those of its rule
	// If several rules have this counter, Max and Burst are the strictest numbers of their limits.
	// Otherwise Max is 0.
	Max, Burst int64
	Merged     []*Applied // the other rules that have the counter
	IsMark     bool
	Costly     bool // the cost is above this limit of a soft rule, which therefore does not charge the call
}

// Shown reports whether callers are told about the limit. They are not told about limits of soft rules
// that do not bind.
func (a *CallLimit) Shown() bool { return !a.Rule.Soft }

// NewCall returns a call for a pool. Its first charge has the id.
func (e *Engine) NewCall(o Observer, id uint64) Call {
	return Call{engine: e, observer: o, id: id, op: algorithm.Op{Calls: 1}}
}

// ID returns a number that no other call has, as long as this object lives.
func (c *Call) ID() uint64 { return c.id }

// Clear empties the call for the next one. It keeps the memory of keys and lists.
func (c *Call) Clear() {
	c.id += 1 + uint64(len(c.op.Counters))
	c.limits, c.op.Counters, c.op.Verdicts = c.limits[:0], c.op.Counters[:0], c.op.Verdicts[:0]
	c.state = state{}
	c.merged, c.marked, c.failed, c.op.MayRecall = c.merged[:0], c.marked[:0], nil, false
	if c.costly.By != nil { // each pointer costs something while the garbage collector runs
		c.costly = Costly{}
	}
	if c.holder != "" {
		c.holder = ""
	}
	if c.op.Bill != nil {
		c.op.Bill = nil
	}
}

// LookOnly sets whether the counters that are added from now on, until Clear, charge nothing. They
// then need neither a note nor the name of a holder.
func (c *Call) LookOnly(on bool) { c.looksOnly = on }

// LooksOnly reports what LookOnly has set.
func (c *Call) LooksOnly() bool { return c.looksOnly }

// Holder returns the name of the slots that the call takes, or "".
func (c *Call) Holder() string { return c.holder }

// Drop removes all counters of the call, so that rules can be added again.
func (c *Call) Drop() {
	c.op.Counters, c.op.Verdicts, c.limits = c.op.Counters[:0], c.op.Verdicts[:0], c.limits[:0]
	c.hasSoft, c.hasCostly, c.warns, c.refused = false, false, false, false
	c.costly, c.marked = Costly{}, c.marked[:0]
}

// Len returns the number of limits and of marks that refuse the call.
func (c *Call) Len() int { return len(c.limits) }

// Limit returns the limit at i.
func (c *Call) Limit(i int) *CallLimit { return &c.limits[i] }

// Counter returns the counter of the limit at i.
func (c *Call) Counter(i int) *algorithm.Counter { return &c.op.Counters[i] }

// Verdict returns the store's verdict on the limit at i.
func (c *Call) Verdict(i int) *algorithm.Verdict { return &c.op.Verdicts[i] }

// Fit reports whether the store answered for all counters, and the call fits in each.
func (c *Call) Fit() bool { return c.fit }

// Passed reports whether the call was allowed by a question that charges, also if the store did not
// answer it.
func (c *Call) Passed() bool { return c.passed }

// Charging reports whether the last question was to charge the call.
func (c *Call) Charging() bool { return c.charging }

// HasSoft reports whether a soft rule was added.
func (c *Call) HasSoft() bool { return c.hasSoft }
