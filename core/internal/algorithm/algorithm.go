// Package algorithm holds each counting algorithm twice: NAME.lua runs in Redis, NAME.go in this
// process.
//
// Both are the same function of a state, the time and a limit, in integers throughout, so they give
// the same answers to the microsecond. The head of an algorithm's Lua file describes the form of
// its state in Redis. If that form changes, the tag must change, so that old and new scripts side
// by side never misread a state.
//
// A small state is one string, read with GET and written with SET ... PXAT. So one script can
// decide any mix of algorithms, a foreign value can be told from a state, and every write renews
// the time to live, even of a key that somebody made persistent. A log and the calls in flight are
// a list and a sorted set: as a string, a log of 10,000 would be 160 kB to read and write for each
// call.
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
}

func register(d definition, files fs.FS) registered {
	p := d.properties()
	return registered{d, p, readSource(files, p.File, p.Tag)}
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

// Properties are what is always true of an algorithm. Each zero value is the safe one.
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
	Reserves bool // permits can be reserved for a later turn
	Notes    bool // a note is kept with each call, and calls are listed
	Debts    bool // permits can be charged beyond the limit; see definition.room
	// Slots reports that permits are held by calls in flight. A call takes one, whatever its cost,
	// under a name of its own. It renews the slot, and gives it back when it ends.
	Slots bool
	// Pauses reports that it lets every call pass, or none until its time is over, and is never
	// charged.
	Pauses bool

	Remembers bool // a refusal may be repeated while it is steady; see definition.steady
	Leases    bool // permits may be charged ahead of their use; see definition.leaseLife
	// Merges reports that equal calls can be decided together: the state is a string that
	// definition.readState reads, and nothing of a single call is kept in it.
	Merges bool
}

// HasPermits reports whether calls are charged. If not, the cost of a call does not matter.
func (p *Properties) HasPermits() bool { return !p.Pauses }

// definition is an algorithm. The methods up to charge compute the same as NAME.lua, and every
// algorithm has them. The others have safe defaults, in the type defaults.
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
	// look returns how many permits remain, and after how long a cost fits. It changes nothing.
	look(s *State, t moment, l *Limit, cost int64) (remaining, retryAfter int64)
	// resetAfter returns how long it takes until the state equals a fresh one.
	resetAfter(s *State, t moment, l *Limit) int64
	// charge charges a cost that fits.
	charge(s *State, t moment, l *Limit, cost int64, mark string) effect

	// giveBack gives back a charge as far as it still counts, and never more: what others used
	// stays used. It returns how many permits may still have counted but were not given back; see
	// token_bucket_giveback.lua. The state need not be anchored. By default nothing is given back,
	// and nothing lost.
	giveBack(s *State, now int64, c *Charge) (lost int64)
	// empty reports whether a state holds nothing after charges were given back. Then the script
	// that gives back deletes the key, or lets it expire at once. By default, the state stays until
	// its time is over.
	empty(s *State) bool
	// args returns the arguments of the algorithm's Lua functions that follow the cost. mark is the
	// counter's Mark, and at is approximately now. By default it returns the limit's own args.
	args(l *Limit, mark string, at int64) [4]any
	// share returns a part of the limit. By default a limit cannot be divided.
	share(l *Limit, part float64) (*Limit, error)

	// lasting returns for how long what follows from a verdict on this cost holds. By default nothing is
	// known, and a notice holds for a window.
	lasting(l *Limit, v *Verdict, cost int64) lasting
	// leasedTogether is Limit.LeasedTogether for this algorithm. By default it reports false.
	leasedTogether(l *Limit, a, b *Verdict) bool
	// word returns the state as a Word; see Limit.AsWord. By default a state cannot be a Word.
	word(l *Limit, s *State, now int64) (w Word, value int64, ok bool)
	back(w *Word, value, now int64, s *State) (freshAt int64)

	// fastArg returns the packed args of the function in NAME_fast.lua for this many calls of
	// one cost, and readFast reads its reply.
	fastArg(l *Limit, cost, calls int64) string
	readFast(l *Limit, reply string, cost, calls int64, f *Found) error
	// readState reads the state of a used counter as Redis stores it. By default no string is a
	// state.
	readState(l *Limit, text string, f *Found) error

	// room returns how many permits can be charged if debt more may be in use than the limit lets
	// through. It is negative if more are in use. By default it returns 0.
	room(s *State, t moment, l *Limit, debt int64) int64
	// reserve takes a cost at its turn, if that comes within patience; see Limit.Reserve. By
	// default it returns an error.
	reserve(l *Limit, s *State, now, cost, patience int64) (v Verdict, lives int64)
	// renew keeps a slot for another window; see Limit.Renew. By default it does nothing.
	renew(l *Limit, s *State, now int64, holder string)
	// records lists the calls that count; see Limit.Records. By default there are none.
	records(l *Limit, s *State, now int64) []Record
}

// moment is a time in microseconds, and the place of a state that is written then.
type moment struct{ now, place int64 }

// effect describes the state after a charge.
type effect struct {
	resetAfter int64 // of the state
	position   int64 // of the charge; see Charge
}

// defaults provides the methods that an algorithm need not define.
type defaults struct{}

func (defaults) giveBack(*State, int64, *Charge) (lost int64) { return 0 }

func (defaults) empty(*State) bool { return false }

func (defaults) args(l *Limit, _ string, _ int64) [4]any { return l.boxed }

func (defaults) lasting(l *Limit, _ *Verdict, _ int64) lasting { return lasting{notice: l.Window} }

func (defaults) leasedTogether(*Limit, *Verdict, *Verdict) bool { return false }

func (defaults) word(*Limit, *State, int64) (w Word, value int64, ok bool) { return w, 0, false }

func (defaults) back(*Word, int64, int64, *State) (freshAt int64) { return 0 }

func (defaults) fastArg(*Limit, int64, int64) string { return "" }

func (defaults) readFast(*Limit, string, int64, int64, *Found) error { return errReply }

func (defaults) readState(*Limit, string, *Found) error { return errReply }

func (defaults) room(*State, moment, *Limit, int64) int64 { return 0 }

func (defaults) reserve(*Limit, *State, int64, int64, int64) (v Verdict, lives int64) {
	return Verdict{Err: errNotReserved}, 0
}

func (defaults) renew(*Limit, *State, int64, string) {}

func (defaults) records(*Limit, *State, int64) []Record { return nil }
