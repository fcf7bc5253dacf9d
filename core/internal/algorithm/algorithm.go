// Package algorithm holds each counting algorithm twice: NAME.lua runs in Redis, NAME.go in this process.
//
// Both are the same function of a state, the time and a limit, in integers throughout, so they give the same answers to
// the microsecond. The form of a state in Redis stands at the head of its Lua file; a change of that form takes another
// [Kind.Tag], so that old scripts beside new ones never misread a state.
package algorithm

import "slices"

// Kind names an algorithm.
type Kind uint8

// The algorithms, in the order of core.Algorithm, and what else is kept for a subject beside its counters.
const (
	SlidingWindow Kind = iota
	SlidingLog
	FixedWindow
	CalendarWindow
	TokenBucket
	Concurrency
	Ban
	kinds
)

// Tag is the algorithm's name and the version of its state, as they stand in keys and scripts.
func (k Kind) Tag() string { return engines[k].tag() }

// State is what a counter of this process remembers; the zero State is a counter that nobody used. It is small, because a
// table holds one for each key.
type State struct {
	// At places the state in time. SlidingWindow: number of the sub-window charged last; FixedWindow, CalendarWindow: start
	// of the window; TokenBucket: tick; SlidingLog, Concurrency: the newest entry; Ban: the last strike. Microseconds
	// but for numbers and ticks.
	At   int64
	Used int64 // permits; TokenBucket: units; Ban: the end of the ban, in microseconds
	More *More // nil while there is no more

	Charged int64 // TokenBucket: the position of the last charge
	Born    int64 // TokenBucket: when it was used for the first time since it was full; microseconds
}

// More is what most states can do without, or share: that of a bucket without parts is its limit's, and never written.
type More struct {
	// Own is, of a SlidingWindow, the permits of sub-window At, without More all that is used; of a TokenBucket the units of one
	// permit when Used was written; of a Ban, how many bans there were, times 2^16, and the strikes in a row.
	Own     int64
	Until   int64    // Ban: when all is forgotten, in microseconds; TokenBucket: units refilled per tick when Used was written
	Older   *older   // SlidingWindow: the sub-windows before At
	Entries *[]Entry // SlidingLog: the admitted calls; Concurrency: the calls in flight; oldest first
	Parts   *[]part  // TokenBucket: what is used, where that is more than one number; slowest rate first
}

// Entry is a call that was admitted.
type Entry struct {
	At       int64  // when, or when it was renewed last, or as of when it counts, because the clock stepped back; microseconds
	Admitted int64  // SlidingLog: when
	Cost     int64  // permits
	Sum      int64  // SlidingLog: the permits of the entries up to and with this one
	Position int64  // SlidingLog: that of the entry before plus the cost, or where no entry counted the time plus the cost
	Mark     string // SlidingLog: its note; Concurrency: its holder
}

// Counter is one thing to count: a key, its limit, and what the call at hand costs.
type Counter struct {
	Key   []byte // as core forms it; valid during the call only
	Limit *Limit
	Cost  int64  // permits; 0 asks without charging
	Mark  string // SlidingLog: the note; Concurrency: the holder
	// Watched holds the places in the call of the counters whose refusals a Ban counts, in order.
	// The list must not be written to.
	Watched []int
	// Required says that the call is refused when the store cannot answer for this counter.
	Required bool
	// Dry says that this counter refuses no call, though it is charged like any other. A ban is Dry where what it watches is: all of
	// them, or none.
	Dry bool
	// Personal says that this counter is asked for because of who calls. A refusal by the others is
	// one for every caller.
	Personal bool
	// Lease is how many calls of this cost may be taken in one trip, to be spent at home; 0: each call asks. Only of a counter that
	// is alone on its call, and of SlidingWindow and FixedWindow.
	Lease int64
	// LocalShare is the part of the limit by which this process counts by itself while the store that it shares cannot answer, up to 1; 0: it
	// does not.
	LocalShare float64
}

// Verdict is an engine's answer for one counter. Times are in microseconds.
type Verdict struct {
	At         int64 // when it was asked, since the epoch
	Remaining  int64 // permits left, after the charge if there was one
	ResetAfter int64 // until the state equals a fresh one
	RetryAfter int64 // until the cost fits, with nobody else charging; 0: it fits
	Wait       int64 // of a reservation: until its turn
	Position   int64 // of the charge: see Charge; 0 where nothing was charged. Of a Ban 1 if it is struck now
	From       Origin
	Part       uint8 // of a call over several shards: the same for the counters that one of them answered for
	Err        error // why the store could not answer; the rest is zero
	Ended      error // the caller's own context ended first: its error; the rest is zero
	Instead    error // FromLocal: why the store could not answer
}

// Failure is why the store could not answer, whoever did instead; nil when it did.
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
	FromStore   Origin = iota // the store was asked
	FromRefusal               // a refusal of the store's still holds, and was remembered
	FromLease                 // the permits were taken from the store before, together with others
	FromLocal                 // the store did not answer, so this process counted by itself
	FromNobody                // another counter of the call refused as it did before, so nobody was asked; the rest is zero
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

// Record is one call in the log of a SlidingLog.
type Record struct {
	At   int64 // microseconds since the epoch
	Cost int64
	Note string
}

// engine is one algorithm in this process. The methods mirror the Lua function of the same name.
type engine interface {
	tag() string
	// place is the At of a state that is written now.
	place(now int64, l *Limit) int64
	// anchor brings a state that the clock has stepped back behind to the place of now: all of it counts as used now.
	anchor(s *State, place int64, l *Limit)
	// look says what an anchored state answers to a cost: what remains, and when the cost fits. It changes nothing: neither
	// may a refused call.
	look(s *State, t moment, l *Limit, cost int64) (remaining, retryAfter int64)
	// resetAfter is how long until an anchored state equals a fresh one.
	resetAfter(s *State, t moment, l *Limit) int64
	// charge takes the cost, which fits, and returns the resetAfter of what it leaves, and the position of the charge.
	charge(s *State, t moment, l *Limit, cost int64, mark string) (resetAfter, position int64)
	// giveBack takes a charge back as far as it still counts, and never more: what others used stays used.
	giveBack(s *State, now int64, c *Charge)
}

// moment is a time in microseconds, and the place of a state that is written then.
type moment struct{ now, place int64 }

var engines = [kinds]engine{
	SlidingWindow: slidingWindow{}, SlidingLog: slidingLog{}, FixedWindow: fixedWindow{}, CalendarWindow: calendarWindow{},
	TokenBucket: tokenBucket{}, Concurrency: concurrency{}, Ban: ban{},
}

// Look says what a counter answers to a cost. It changes nothing, but that a call which may charge anchors a clock that
// stepped back, as in decide.lua.
func (l *Limit) Look(s *State, now, cost int64, charge bool, v *Verdict) {
	e := engines[l.Kind]
	t := moment{now, e.place(now, l)}
	s = l.look(e, s, t, cost, charge, v)
	v.ResetAfter = e.resetAfter(s, t, l)
}

// look leaves out the ResetAfter, which a charge changes. It returns the state that it looked at.
func (l *Limit) look(e engine, s *State, t moment, cost int64, charge bool, v *Verdict) *State {
	counts := cost > 0 || l.Kind == Ban
	if s.At > t.place {
		s = l.anchored(s, t.place, charge && counts)
	}
	remaining, retryAfter := e.look(s, t, l, cost)
	if !counts { // nothing always fits, also after the limit was lowered below what is used
		retryAfter = 0
	}
	*v = Verdict{At: t.now, Remaining: max(0, remaining), RetryAfter: retryAfter}
	return s
}

// anchored is the state, or where it may not be changed a copy, brought to a place before it: the clock stepped back.
func (l *Limit) anchored(s *State, place int64, change bool) *State {
	if !change {
		s = s.clone()
	}
	engines[l.Kind].anchor(s, place, l)
	return s
}

func (s *State) clone() *State {
	c := *s
	if s.More != nil {
		more := *s.More
		c.More = &more
		if more.Older != nil {
			more.Older = new(*more.Older)
		}
		if more.Entries != nil {
			more.Entries = new(slices.Clone(*more.Entries))
		}
	}
	return &c
}

// own is the part of a state beside At and Used that is this counter's own, made when it has none.
func (s *State) own() *More {
	if s.More == nil {
		s.More = new(More)
	}
	return s.More
}

// Charge takes a cost that [Limit.Look] found to fit at the same time.
func (l *Limit) Charge(s *State, now, cost int64, mark string, v *Verdict) {
	e := engines[l.Kind]
	v.ResetAfter, v.Position = e.charge(s, moment{now, e.place(now, l)}, l, cost, mark)
	v.Remaining -= cost
}

// Decide looks, and charges a cost that fits. It says whether it did: nothing, and a ban, is never charged.
func (l *Limit) Decide(s *State, now, cost int64, mark string, v *Verdict) (charged bool) {
	e := engines[l.Kind]
	t := moment{now, e.place(now, l)}
	s = l.look(e, s, t, cost, true, v)
	if v.RetryAfter != 0 || cost == 0 || l.Kind == Ban {
		v.ResetAfter = e.resetAfter(s, t, l)
		return false
	}
	v.ResetAfter, v.Position = e.charge(s, t, l, cost, mark)
	v.Remaining -= cost
	return true
}

// place returns the position of the newest permit that is to be given back.
func (c *Charge) place() int64 {
	if c.Limit.Kind == TokenBucket {
		return c.Position - c.Given
	}
	return c.Position
}

// GiveBack takes a charge back, as far as it still counts.
func (c *Charge) GiveBack(s *State, now int64) { engines[c.Limit.Kind].giveBack(s, now, c) }

// Refuses says whether what was found for this counter refuses the call: it does not fit, or the store could not answer for
// a counter that is required. A dry counter refuses nothing.
func (c *Counter) Refuses(v *Verdict) bool {
	return !c.Dry && (v.RetryAfter != 0 || v.Err != nil && c.Required)
}

// Passes says whether counters let the call pass: all of them.
func Passes(counters []Counter, verdicts []Verdict) bool {
	for i := range verdicts {
		if counters[i].Refuses(&verdicts[i]) {
			return false
		}
	}
	return true
}

// Struck says whether the counter at i is a ban that is to hear of a refusal: one that does not hold itself, while a counter
// which it watches refused.
func Struck(counters []Counter, verdicts []Verdict, i int) bool {
	if counters[i].Limit.Kind != Ban || counters[i].Limit.after == 0 || verdicts[i].RetryAfter != 0 {
		return false
	}
	return slices.ContainsFunc(counters[i].Watched, func(at int) bool { return verdicts[at].RetryAfter > 0 })
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

// Charged is what a call that passed was charged for this counter, to be given back; its Cost is 0 when that is nothing.
func (c *Counter) Charged(v *Verdict) Charge {
	charge := Charge{Key: c.Key, Limit: c.Limit, Cost: c.Taken(v), At: v.At, Position: v.Position, Mark: c.Mark}
	if v.From == FromLocal {
		charge.LocalShare = c.LocalShare
	}
	return charge
}

// Taken is the Cost of what a call that passed was charged.
func (c *Counter) Taken(v *Verdict) int64 {
	switch {
	case v.RetryAfter > 0 || v.Err != nil || c.Limit.Kind == Ban:
		return 0
	case v.From == FromLocal:
		return min(c.Cost, ceilPart(c.Limit.Max, c.LocalShare))
	default:
		return c.Cost
	}
}
