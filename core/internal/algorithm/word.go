package algorithm

// Word is a counter in one integer, for as long as that is possible. For a window, the integer is
// the number of permits used, until its sub-window or the window is over. For a bucket, it is the
// number of units used, plus those that have come back since the word was made. A charge changes
// that integer alone, so many goroutines can charge at once, with a compare-and-swap.
type Word struct {
	kind       Kind
	full, unit int64 // what fits at most, and one permit, in units
	refill     int64 // units that come back per tick; 0: all come back at reset
	tick       int64 // with refill: the length of a tick in microseconds
	// The word is valid for calls from from to before until. These and reset are in microseconds
	// since the epoch. With refill, a tick begins at from.
	from, until int64
	reset       int64 // without refill: when everything used comes back
	first       int64 // with refill: the position of the last charge if nothing is used; without: that of every charge
}

// AsWord makes a word from a state that was charged just now. It reports false if the state cannot
// be a word.
func (l *Limit) AsWord(s *State, now int64) (w Word, value int64, ok bool) {
	if words := registry[l.Kind].words; words != nil {
		return words.word(l, s, now)
	}
	return w, 0, false
}

// Charge returns the word after one more call. It reports false if the call does not fit, or comes
// at another time.
func (w *Word) Charge(value, now, cost int64) (next int64, fits bool) {
	if now < w.from || now >= w.until {
		return 0, false
	}
	if w.refill == 0 {
		next = value + cost
		return next, next <= w.full
	}
	back := ticks(now-w.from, w.tick) * w.refill
	next = max(value, back) + cost*w.unit
	return next, next-back <= w.full
}

// Answer returns the verdict on a call of a cost, after whose charge the word has this value. It is
// not part of Charge, so that no other goroutine waits for it.
func (w *Word) Answer(value, now, cost int64) Verdict {
	if w.refill == 0 {
		return Verdict{At: now, Remaining: w.full - value, ResetAfter: w.reset - now, Position: w.first, Taken: cost}
	}
	passed := ticks(now-w.from, w.tick)
	used := value - passed*w.refill
	return Verdict{
		At: now, Remaining: max(0, floorDiv(w.full-used, w.unit)), ResetAfter: w.from + (passed+ceilDiv(used, w.refill))*w.tick - now,
		Position: w.position(value), Taken: cost,
	}
}

// position returns the position of the last charge. It skips permits that came back while the
// bucket was full, so it grows with every charge.
func (w *Word) position(value int64) int64 { return w.first + ceilDiv(value, w.unit) }

// Back writes the word into the state that it was made from, as of its last charge. It returns
// when the state equals a fresh one, in microseconds since the epoch.
func (w *Word) Back(value, now int64, s *State) (freshAt int64) {
	return registry[w.kind].words.back(w, value, now, s)
}

func ceilDiv(a, b int64) int64 { return (a + b - 1) / b }

func floorDiv(a, b int64) int64 {
	if a < 0 {
		return -ceilDiv(-a, b)
	}
	return a / b
}
