package algorithm

import "slices"

// State is what this process remembers of a counter. The zero State is that of an unused counter.
// It is small, because a table holds one for each key.
type State struct {
	At   int64 // when it was written, in the algorithm's own units; see definition.place
	Used int64 // permits; of a TokenBucket the units in which it was written
	More *More // nil if there is nothing more

	Charged int64 // TokenBucket: the position of the last charge
	// Born is when the state of a TokenBucket, a SlidingWindow or a CalendarWindow was first used
	// since it was last unused, in microseconds. If the clock steps back, it is renewed.
	Born int64
}

// More holds what only few states need: data of the state's algorithm. The buckets of one limit share
// one More, which is never written to.
type More struct {
	window *subWindowed
	log    *entryLog
	rate   *Rate // TokenBucket: that of the last call that was charged
	other  *other
}

// other is the state of a key that is no counter. It is a struct of its own, because another field of
// More would cost each sliding window in use 16 bytes.
type other struct {
	noted []notedLimit // of a notice
	bill  *billRecord
	pause *PauseState
}

func (s *State) clone() *State {
	c := *s
	if s.More == nil {
		return &c
	}
	more := *s.More
	c.More = &more
	if more.window != nil {
		more.window = new(*more.window)
	}
	if more.log != nil {
		more.log = &entryLog{slices.Clone(more.log.entries), more.log.shift}
	}
	if more.other != nil && more.other.pause != nil {
		more.other = &other{pause: new(*more.other.pause)}
	}
	return &c // a notice is replaced, never written to
}
