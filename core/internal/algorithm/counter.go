package algorithm

// Counter is one thing to count: a key, its limit, and the cost of the current call.
type Counter struct {
	Key   []byte // as core forms it; valid during the call only
	Limit *Limit
	Cost  int64  // permits; 0: look only
	Mark  string // a log's note, or the holder of a slot
	// Required says that the call is refused if the store cannot answer for this counter.
	Required bool
	// Behind says that the counter refuses nobody, because its rule is soft. The counters with the same
	// number, other than 0, are a call behind the one of the counters with 0: if that passes, either all of
	// them are charged or none. They lie in one shard, and follow each other.
	Behind uint16
	// Personal says that the counter depends on who calls. A refusal by a counter that is not
	// personal holds for every caller.
	Personal bool
	// ShowsDebt says that the Remaining of a look is negative if more is in use than the limit lets
	// through.
	ShowsDebt bool
	// Lease is how many calls of this cost may be charged in one trip, for this process to use
	// later; 0: each call asks the store. It is used only if the call has no other counter.
	Lease int64
	// LocalShare is the fraction of the limit, up to 1, by which this process counts alone while
	// the shared store cannot answer; 0: it does not.
	LocalShare float64
}

// SetCost sets the cost of all counters.
func SetCost(counters []Counter, cost int64) {
	for i := range counters {
		counters[i].Cost = cost
	}
}

// Verdict is a store's answer for one counter. Times are in microseconds.
type Verdict struct {
	At         int64 // of the decision, since the epoch
	Remaining  int64 // permits left, after the charge if there was one
	ResetAfter int64 // until the state equals a fresh one
	RetryAfter int64 // until the cost fits if nobody else charges; 0: it fits
	Wait       int64 // of a reservation: until its turn
	Position   int64 // of the charge: see Charge; 0 if nothing was charged
	// Taken is how many permits the call was charged and has not given back. Only code that charges
	// sets it. It is 0 for a counter that fits but took no part in the decision, and for all
	// counters of a refused call.
	Taken int64
	From  Origin
	// Part numbers the shards of a call: counters with the same Part were answered by one shard.
	Part    uint8
	Err     error // why the store could not answer; the rest is zero
	Ended   error // the error of the caller's own context, if that ended first; the rest is zero
	Instead error // FromLocal: why the store could not answer
}

// Uncharge changes a verdict on this counter as if its charge had been given back. If others have
// used the counter too, ResetAfter stays as it was with the charge, which is an upper bound.
func (c *Counter) Uncharge(v *Verdict) {
	v.Remaining, v.Taken, v.Position = v.Remaining+v.Taken, 0, 0
	if v.Remaining == c.Limit.Max {
		v.ResetAfter = 0
	}
}

// Failure returns why the store could not answer, even if this process answered instead.
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
	FromMark                  // the subject is blocked or banned, which the process knows
	// FromNobody means that a remembered refusal of another counter decided the call, so there is
	// no decision on this one. The rest of the verdict is zero.
	FromNobody
)

// Charge is what one call was charged on one counter. It is needed to give that back.
type Charge struct {
	Key   []byte
	Limit *Limit
	Cost  int64 // permits to give back
	At    int64 // when they were charged: Verdict.At
	// Position distinguishes the charge from other charges of its counter, even those of the same
	// microsecond: it increases with every charge. In a window, it distinguishes only the charges
	// before the clock stepped back from those after. It is 0 for algorithms that do not need it.
	Position int64
	Whole    bool   // these are all permits that were charged
	Mark     string // Counter.Mark
	// LocalShare is the counter's LocalShare if this process charged it alone; 0: the store charged
	// it.
	LocalShare float64
	// InDebt reports whether permits come back even if the bucket is overdrawn, whatever was charged
	// behind them. That is right for the charges of bills, because nobody waits for a turn there.
	InDebt bool
	// Record is the key of a record by which the charge is given back only once, however often the
	// store is asked within RecordLife. All charges that are given back together have the same Record.
	// It is nil if there is none.
	Record []byte
}

// Part returns the charge of so many of its permits.
func (c Charge) Part(permits int64) Charge {
	c.Cost, c.Whole = permits, c.Whole && permits == c.Cost
	return c
}

// Charges reports whether a call that passes is charged to this counter.
func (c *Counter) Charges() bool { return c.Cost > 0 && registry[c.Limit.Kind].HasPermits() }

// Refuses reports whether a verdict on this counter refuses the call: the call does not fit, or the
// counter is required and the store could not answer. A counter of a soft rule refuses nothing.
func (c *Counter) Refuses(v *Verdict) bool {
	return c.Behind == 0 && (v.RetryAfter != 0 || v.Err != nil && c.Required)
}

// Charged returns what the call was charged on this counter. If its Cost is 0, nothing was charged.
func (c *Counter) Charged(v *Verdict) Charge {
	charge := Charge{Key: c.Key, Limit: c.Limit, Cost: v.Taken, At: v.At, Position: v.Position, Whole: true, Mark: c.Mark}
	if v.From == FromLocal {
		charge.LocalShare = c.LocalShare
	}
	return charge
}

// Merges reports whether equal calls on this counter can be decided together. They can if they
// charge it and leave nothing in its state that tells them apart, or if it has no permits.
func (c *Counter) Merges() bool {
	if !registry[c.Limit.Kind].HasPermits() {
		return c.Behind == 0
	}
	return c.Cost > 0 && c.Behind == 0 && registry[c.Limit.Kind].Properties.Merges
}
