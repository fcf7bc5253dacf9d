// Package algorithm holds each counting algorithm twice: NAME.lua runs in Redis, NAME.go in this process.
//
// Both are the same function of a state, the time and a limit, in integers throughout, so they give the same answers to
// the microsecond. The Lua reads and writes a state as one string, whose form stands at the head of its file; a change of
// that form takes another [Kind.Tag], so that old scripts beside new ones never misread a state.
package algorithm

import "slices"

// Kind names an algorithm.
type Kind uint8

// The algorithms, in the order of core.Algorithm.
const (
	SlidingWindow Kind = iota
	FixedWindow
	TokenBucket
)

// Tag is the algorithm's name and the version of its state, as they stand in keys and scripts.
func (k Kind) Tag() string { return engines[k].tag() }

// Limit is a limit in the integers that both engines calculate with. Make one with [Windowed] or [Bucketed].
type Limit struct {
	Kind   Kind
	Max    int64 // permits that fit: of a window, or of the full bucket
	Window int64 // microseconds
	Permit int64 // TokenBucket: units of one permit
	Refill int64 // TokenBucket: units that come back per tick
	Tick   int64 // TokenBucket: microseconds

	tag  any    // of the algorithm, and
	args [4]any // its args, as interfaces once and for all: made call by call, each would be an allocation
}

// AppendArgs appends what the scripts take for a counter with this limit: the algorithm, the cost, and the args of the
// algorithm's Lua function, padded to four.
func (l *Limit) AppendArgs(args []any, cost int64) []any {
	return append(args, l.tag, cost, l.args[0], l.args[1], l.args[2], l.args[3])
}

// State is what a counter of this process remembers; the zero State is a counter that nobody used.
type State struct {
	At    int64    // FixedWindow: start in microseconds; SlidingWindow: number of a sub-window; TokenBucket: tick
	Used  int64    // permits, for TokenBucket units
	Own   int64    // SlidingWindow: permits of sub-window At; TokenBucket: units of one permit when Used was written
	Older []uint64 // SlidingWindow: the older sub-windows that still count, oldest first: number modulo 64, then 40 bits of permits
}

// Counter is one thing to count: a key, its limit, and what the call at hand costs.
type Counter struct {
	Key   []byte // as core forms it; valid during the call only
	Limit *Limit
	Cost  int64 // permits; 0 asks without charging
	// Required says that the call is refused when the store cannot answer for this counter.
	Required bool
}

// Verdict is an engine's answer for one counter. Times are in microseconds.
type Verdict struct {
	Remaining  int64 // permits left, after the charge if there was one
	ResetAfter int64 // until the state equals a fresh one
	RetryAfter int64 // until the cost fits, with nobody else charging; 0: it fits
	Err        error // why the store could not answer; the rest is zero
	Ended      error // the caller's own context ended first: its error; the rest is zero
}

// engine is one algorithm in this process. The methods mirror the Lua function of the same name.
type engine interface {
	tag() string
	// place is the At of a state that is written now.
	place(now int64, l *Limit) int64
	// anchor brings a state that the clock has stepped back behind to the place of now: all of it counts as used now.
	anchor(s *State, place int64, l *Limit)
	// look says what an anchored state answers to a cost. It changes nothing: neither may a refused call.
	look(s *State, now int64, l *Limit, cost int64) Verdict
	// charge takes the cost, which fits, and returns when the state will equal a fresh one again.
	charge(s *State, now int64, l *Limit, cost int64) (resetAfter int64)
}

var engines = [...]engine{SlidingWindow: slidingWindow{}, FixedWindow: fixedWindow{}, TokenBucket: tokenBucket{}}

// Look says what a counter answers to a cost. It changes nothing, but that a call which may charge anchors a clock that
// stepped back, as in decide.lua.
func (l *Limit) Look(s *State, now, cost int64, charge bool) Verdict {
	e := engines[l.Kind]
	if place := e.place(now, l); s.At > place {
		if !charge || cost == 0 {
			s = s.clone()
		}
		e.anchor(s, place, l)
	}
	v := e.look(s, now, l, cost)
	v.Remaining = max(0, v.Remaining)
	if cost == 0 { // nothing always fits, also after the limit was lowered below what is used
		v.RetryAfter = 0
	}
	return v
}

func (s *State) clone() *State {
	c := *s
	c.Older = slices.Clone(s.Older)
	return &c
}

// Charge takes a cost that [Limit.Look] found to fit at the same time.
func (l *Limit) Charge(s *State, now, cost int64, v *Verdict) {
	v.ResetAfter = engines[l.Kind].charge(s, now, l, cost)
	v.Remaining -= cost
}
