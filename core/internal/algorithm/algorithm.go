// Package algorithm holds each counting algorithm twice: NAME.lua runs in Redis, NAME.go in this
// process. In Redis an algorithm is a step, which decides, and a change, for afterwards: see decide.lua and
// change.lua. Scripts reply with what they found, and the answer follows from that by the code that decides
// in this process.
//
// Both are the same function of a state, the time and a limit, in integers throughout, so they give
// the same answers to the microsecond. The head of an algorithm's Lua file describes the form of
// its state in Redis. If that form changes, the tag must change, so that old and new scripts side
// by side never misread a state.
//
// A small state is one string, read with GET and written with SET ... PXAT. So one script can
// decide any mix of algorithms, a foreign value can be told from a state, and every write renews
// the time to live, even of a key that somebody made persistent. A log and the calls in flight are
// sorted sets: as a string, a log of 10,000 would be 160 kB to read and write for each call.
//
// Nothing outside an algorithm's own files asks which algorithm a limit has. Algorithms differ in
// their [Properties] and in the methods of their definition.
package algorithm

import "io/fs"

// Kind is an algorithm.
type Kind uint8

// The algorithms, in the order of core.Algorithm. No limit has the last ones. Their states are kept
// for a subject beside its counters.
const (
	SlidingWindow Kind = iota
	SlidingLog
	FixedWindow
	CalendarWindow
	TokenBucket
	Concurrency
	Pausing
)

// registry holds the algorithms by their kind, and has room for more. Its length bounds the number
// of sets of algorithms, by which scripts are cached. It holds pointers, because a call of a value's
// method by the interface goes through another function: 42 of the 2,050 instructions of a call
// without headers (BenchmarkCheck in core).
var registry = [9]registered{
	SlidingWindow:  register(new(slidingWindow), texts),
	SlidingLog:     register(new(slidingLog), texts),
	FixedWindow:    register(new(fixedWindow), texts),
	CalendarWindow: register(new(calendarWindow), texts),
	TokenBucket:    register(new(tokenBucket), texts),
	Concurrency:    register(new(concurrency), texts),
	Pausing:        register(new(pause), texts),
}

// registered is an algorithm, ready for use.
type registered struct {
	definition
	Properties
	lua source
	// nil: it cannot do that
	leases  leaser
	words   worder
	turns   turner
	slots   renewer
	records recorder
}

func register(d definition, files fs.FS) registered {
	p := d.properties()
	r := registered{definition: d, Properties: p, lua: readSource(files, &p)}
	r.leases, _ = d.(leaser)
	r.words, _ = d.(worder)
	r.turns, _ = d.(turner)
	r.slots, _ = d.(renewer)
	r.records, _ = d.(recorder)
	r.Leases, r.Reserves, r.Slots, r.Notes = r.leases != nil, r.turns != nil, r.slots != nil, r.records != nil
	return r
}

// Kinds returns all algorithms.
func Kinds() (all []Kind) {
	for k := range registry {
		if registry[k].definition != nil {
			all = append(all, Kind(k))
		}
	}
	return all
}

// Known reports whether there is such an algorithm.
func (k Kind) Known() bool { return int(k) < len(registry) && registry[k].definition != nil }

// Tag returns the algorithm's name and the version of its state, as in keys and scripts.
func (k Kind) Tag() string { return registry[k].Properties.Tag }

// Properties returns what is always true of a known algorithm.
func (k Kind) Properties() *Properties { return &registry[k].Properties }

// OfLimit returns the properties of an algorithm that a limit can have. Any other has none.
func (k Kind) OfLimit() *Properties {
	if !k.Limits() {
		return &noProperties
	}
	return k.Properties()
}

// Limits reports whether a limit can have this algorithm.
func (k Kind) Limits() bool { return k.Known() && k.Properties().HasPermits() }

var noProperties Properties

// Properties are what is always true of an algorithm. Each zero value is the safe one. Leases, Reserves, Slots
// and Notes follow from the methods that it has.
type Properties struct {
	Name string // as core spells it
	Text string // its words in the text form of a limit, if any: after the rate or, with Slots, after the number
	File string // the prefix of its Lua files
	Tag  string // its short name and the version of its state, as in keys and scripts

	MaxPermits int64 // the largest Max, up to the constant MaxPermits; MaxEntries unless set
	MinWindow  int64 // the shortest window in microseconds, if that is longer than a millisecond

	Exact    bool // no more than Max permits pass in any span of a window
	Late     bool // a permit comes back up to 1/32 of the window late
	Burst    bool // a limit has a Burst
	Calendar bool // a limit may count in the days or months of a zone
	Reserves bool // permits can be reserved for a later turn; see turner
	Notes    bool // a note is kept with each call, and calls are listed; see recorder
	Debts    bool // permits can be charged beyond the limit; see Limit.ChargeInDebt
	// Slots reports that permits are held by calls in flight. A call takes one, whatever its cost,
	// under a name of its own. It renews the slot, and gives it back when it ends.
	Slots bool
	// Pauses reports that it lets every call pass, or none until its time is over, and is never
	// charged.
	Pauses bool

	Remembers bool // a refusal may be repeated while it is steady; see Limit.Steady
	Leases    bool // permits may be charged ahead of their use; see Limit.LeaseLife
	// Merges reports that equal calls can be decided together: nothing of a single call is kept in the
	// state.
	Merges bool
}

// HasPermits reports whether calls are charged. If not, the cost of a call does not matter.
func (p *Properties) HasPermits() bool { return !p.Pauses }

// definition is an algorithm. The methods up to charge compute the same as NAME.lua.
//
// A State that is passed to a method is anchored: it was not written after the moment.
type definition interface {
	properties() Properties
	// limit makes a limit. Its terms are within the bounds that the properties give.
	limit(t *Terms) (Limit, error)

	// place returns the At of a state that is written now.
	place(now int64, l *Limit) int64
	// anchor moves a state that was written before the clock stepped back to an earlier place, without
	// giving any permits back. It renews the birth of a window, so that charges made before are not
	// given back: they can no longer be told apart from those of others.
	anchor(s *State, t moment, l *Limit)
	// look returns how many permits remain, which may be negative, and after how long a cost fits, 0 if it
	// fits now. The cost may be more than ever fits. It changes nothing.
	look(s *State, t moment, l *Limit, cost int64) (remaining, retryAfter int64)
	// resetAfter returns how long it takes until the state equals a fresh one.
	resetAfter(s *State, t moment, l *Limit) int64
	// charge charges a cost that fits.
	charge(s *State, t moment, l *Limit, cost int64, mark string) effect

	// args returns the args of the algorithm's Lua functions for a limit of so many permits. at is
	// approximately now.
	args(l *Limit, permits, at int64) [4]int64
	// readState reads what the algorithm's step replied, and sets the state to the one that it found, as it
	// counted when the step charged.
	readState(l *Limit, text string, f *Found) error

	// giveBack gives back a charge as far as it still counts, and never more: what others used
	// stays used. Calls over several servers rely on it. It returns how many permits may still have counted but were not given back. The state
	// need not be anchored.
	giveBack(s *State, now int64, c *Charge) (lost int64)
	// lasting returns for how long what follows from a verdict on this cost holds.
	lasting(l *Limit, v *Verdict, cost int64) lasting
	// share returns a part of the limit.
	share(l *Limit, part float64) (*Limit, error)
}

// These are what only some algorithms can do.
type (
	// leaser reports whether two charges were made together; see Limit.LeasedTogether.
	leaser interface {
		leasedTogether(l *Limit, a, b *Verdict) bool
	}
	// worder returns the state as a Word, and writes that back; see Limit.AsWord.
	worder interface {
		word(l *Limit, s *State, now int64) (w Word, value int64, ok bool)
		back(w *Word, value, now int64, s *State) (freshAt int64)
	}
	// turner takes a cost at its turn, if that comes within patience; see Limit.Reserve.
	turner interface {
		reserve(l *Limit, s *State, now, cost, patience int64) (v Verdict, lives int64)
	}
	// renewer keeps a slot for another window; see Limit.Renew.
	renewer interface {
		renew(l *Limit, s *State, now int64, holder string)
	}
	// recorder lists the calls that count; see Limit.Records.
	recorder interface {
		records(l *Limit, s *State, now int64) []Record
	}
)

// moment is a time in microseconds, and the place of a state that is written then.
type moment struct{ now, place int64 }

// effect describes the state after a charge.
type effect struct {
	resetAfter int64 // of the state
	position   int64 // of the charge: see Charge; 0 if giveBack needs none
}

// defaults provides what is the same for most algorithms: the args are the permits and the window, a share has
// a part of Max, and nothing is known of how long a verdict holds.
type defaults struct{}

func (defaults) args(l *Limit, permits, _ int64) [4]int64 { return [4]int64{permits, l.Window} }

func (defaults) lasting(l *Limit, _ *Verdict, _ int64) lasting { return lasting{notice: l.Window} }
