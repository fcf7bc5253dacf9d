package algorithm

import "slices"

// Counter is one thing to count: a key, its limit, and what the call at hand costs.
type Counter struct {
	Key   []byte // as core forms it; valid during the call only
	Limit *Limit
	Cost  int64  // permits; 0: look only
	Mark  string // a log's note, or the holder of a slot
	// Watched holds, for a ban, the indexes of the counters of the call whose refusals it counts,
	// in order. The list must not be written to.
	Watched []int
	// Required says that the call is refused if the store cannot answer for this counter.
	Required bool
	// Lenient says that this counter refuses no call, though it is charged like any other: that of a
	// rule that is soft or in DryRun. The counters that a ban watches are all Lenient or all not, and
	// the ban is as they are.
	Lenient bool
	// Group says which Lenient counters belong together: those of a call with the same Group are all
	// charged, or none. They lie in one shard. 0: the counter is charged by itself.
	Group uint16
	// Personal says that the counter depends on who calls. A refusal by a counter that is not
	// personal holds for every caller.
	Personal bool
	// Override asks for what an operator may have set in place of the limits of the counter's rule;
	// nil: nothing can be set. Own says then that the counter's limit is the rule's own, rather
	// than a further one, and CountsIfOverridden that it counts only if an override limits the
	// subject, whose plan is unlimited.
	Override                *OverrideQuery
	Own, CountsIfOverridden bool
	// Lease is how many calls of this cost may be charged in one trip, to be used by this process;
	// 0: each call asks the store. It is used only if the counter is alone on its call.
	Lease int64
	// LocalShare is the part of the limit by which this process counts by itself while the shared
	// store cannot answer, up to 1; 0: it does not.
	LocalShare float64
}

// SetCost sets the cost of all counters.
func SetCost(counters []Counter, cost int64) {
	for i := range counters {
		counters[i].Cost = cost
	}
}

// Verdict is an engine's answer for one counter. Times are in microseconds.
type Verdict struct {
	At         int64 // of the decision, since the epoch
	Remaining  int64 // permits left, after the charge if there was one
	ResetAfter int64 // until the state equals a fresh one
	RetryAfter int64 // until the cost fits, with nobody else charging; 0: it fits
	Wait       int64 // of a reservation: until its turn
	Position   int64 // of the charge: see Charge; 0 if nothing was charged
	// Taken is how many permits the call was charged, as far as nobody gave them back. Only code
	// that charges sets it. So it is 0 unless somebody charged: for a counter that fits but took no
	// part in the decision, too, and for all counters of a call that another one refused.
	Taken int64
	// Blocked and Costly say that the cost does not fit for another reason than what was counted: the
	// subject is blocked, or the cost is above the limit in force. Then nothing is counted.
	Blocked, Costly bool

	Struck   bool // of a ban: it counted a refusal of this call
	Withheld bool // the cost fits, but not into another counter of its Group, so it is not charged
	From     Origin
	// Part is the same for all counters of a call that one shard answered for.
	Part    uint8
	Err     error // why the store could not answer; the rest is zero
	Ended   error // the error of the caller's own context, if that ended first; the rest is zero
	Instead error // FromLocal: why the store could not answer
}

// Exceeded reports whether the cost does not fit because of what was counted.
func (v *Verdict) Exceeded() bool { return v.RetryAfter > 0 && !v.Stops() }

// Stops reports whether this is the verdict on a rule that stops a call, unless it refuses nobody.
func (v *Verdict) Stops() bool { return v.Blocked || v.Costly }

// Uncharge changes a verdict on this counter to that on a call whose charge was given back. If others
// have used the counter too, its ResetAfter stays that of the charge, which is an upper bound.
func (c *Counter) Uncharge(v *Verdict) {
	v.Remaining, v.Taken, v.Position = v.Remaining+v.Taken, 0, 0
	if v.Remaining == c.Limit.Max {
		v.ResetAfter = 0
	}
}

// Failure returns why the store could not answer, even if something else did instead.
func (v *Verdict) Failure() error {
	if v.Err != nil {
		return v.Err
	}
	return v.Instead
}

// Origin is where a verdict comes from.
type Origin uint8

// The origins.
const (
	FromStore   Origin = iota // the store decided
	FromRefusal               // an earlier refusal of the store was remembered, and still holds
	FromLease                 // the permits were charged before, together with others
	FromLocal                 // the store did not answer, so this process counted by itself
	// FromNobody means that a remembered refusal of another counter decided the call, so there is
	// no decision on this one. The rest of the verdict is zero.
	FromNobody
)

// Charge is what a call was charged, to be given back.
type Charge struct {
	Key   []byte
	Limit *Limit
	Cost  int64 // permits to give back
	At    int64 // when they were charged: Verdict.At
	// Position distinguishes the charge from others of its counter, also from those of the same
	// microsecond. It increases with every charge. It is 0 with algorithms that need none.
	Position int64
	Given    int64  // permits of it that were given back before
	Mark     string // Counter.Mark
	// LocalShare is that of the counter, if this process charged it by itself; 0: the store did.
	LocalShare float64
}

// Record is one call in a log.
type Record struct {
	At   int64 // microseconds since the epoch
	Cost int64
	Note string
}

// Charges reports whether a call that passes is charged to this counter.
func (c *Counter) Charges() bool { return c.Cost > 0 && !registry[c.Limit.Kind].Watches }

// Refuses reports whether a verdict on this counter refuses the call: it does not fit, or the store
// could not answer for a counter that is required. A lenient counter refuses nothing.
func (c *Counter) Refuses(v *Verdict) bool {
	return !c.Lenient && (v.RetryAfter != 0 || v.Err != nil && c.Required)
}

// WatchedIn returns the places of the watched counters in a part of the call that consists of the
// counters at these places, in order. It leaves out watched counters that are not in the part.
func (c *Counter) WatchedIn(places []int) (watched []int) {
	for _, at := range c.Watched {
		if n, ok := slices.BinarySearch(places, at); ok {
			watched = append(watched, n)
		}
	}
	return watched
}

// Charged returns what the call was charged for this counter, to be given back. If its Cost is 0,
// nothing was charged.
func (c *Counter) Charged(v *Verdict) Charge {
	charge := Charge{Key: c.Key, Limit: c.Limit, Cost: v.Taken, At: v.At, Position: v.Position, Mark: c.Mark}
	if v.From == FromLocal {
		charge.LocalShare = c.LocalShare
	}
	return charge
}

// takes returns how much a script charges for this counter if the call passes, given its verdict.
func (c *Counter) takes(v *Verdict) int64 {
	if v.RetryAfter > 0 || v.Withheld || !c.Charges() {
		return 0
	}
	return c.Cost
}

// Merges reports whether equal calls on this counter can be decided together: calls that charge it,
// and leave nothing of their own in its state.
func (c *Counter) Merges() bool {
	return c.Cost > 0 && !c.Lenient && registry[c.Limit.Kind].Properties.Merges
}
