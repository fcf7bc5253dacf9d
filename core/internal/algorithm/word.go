package algorithm

import "math"

// Word is a counter in one integer, for as long as it can be: of a window the permits used, until its sub-window or the window
// is over; of a bucket, for a second, the units used, to which what has come back since is added and not taken off. Who charges
// it changes that integer alone, so many can at once, with a compare-and-swap.
type Word struct {
	limit *Limit
	from  int64 // the time at which it was made, in microseconds; it is good for calls from then on
	until int64 // and before this
	reset int64 // of a window: when all that is used is back
	first int64 // of a bucket: the position of a charge with which nothing is used
}

// longestWord is how long the word of a bucket is good, in microseconds: so long that no sum of it overflows.
const longestWord = 1_000_000

// AsWord makes a word of a state that was charged just now; false: this limit has none.
func (l *Limit) AsWord(s *State, now int64) (w Word, value int64, ok bool) {
	w = Word{limit: l, from: now}
	switch {
	case l.Kind == SlidingWindow:
		w.until, w.reset = now+subWindowRest(now, l.Window), now+freeAfter(s.At, now, l.Window)
	case l.Kind == FixedWindow:
		w.until = s.At + l.Window
		w.reset = w.until
	case l.Kind == CalendarWindow:
		w.until = l.endOf(s.At, now)
		w.reset = w.until
	case l.Kind == TokenBucket && l.Tick == 1 && s.More == l.rate:
		w.until, w.first = now+longestWord, s.Charged-ceilDiv(s.Used, l.Permit)
	default:
		return w, 0, false
	}
	return w, s.Used, true
}

// Charge is the word after one more call; false: it does not fit, or comes at another time.
func (w *Word) Charge(value, now, cost int64) (next int64, fits bool) {
	l := w.limit
	switch {
	case now < w.from || now >= w.until:
		return 0, false
	case l.Kind != TokenBucket:
		next = value + cost
		return next, next <= l.Max
	default:
		back := (now - w.from) * l.Refill
		next = max(value, back) + cost*l.Permit
		return next, next-back <= l.Max*l.Permit
	}
}

// Answer is what the call is answered whose charge made this of the word. It is apart from the charge, because nobody else need
// wait for it.
func (w *Word) Answer(value, now int64) Verdict {
	l := w.limit
	if l.Kind != TokenBucket {
		return Verdict{At: now, Remaining: l.Max - value, ResetAfter: w.reset - now}
	}
	used := value - (now-w.from)*l.Refill
	return Verdict{At: now, Remaining: l.left(used), ResetAfter: ceilDiv(used, l.Refill), Position: w.position(value)}
}

// position returns the position of the last charge. It skips permits that came back while the
// bucket was full, so it grows with every charge.
func (w *Word) position(value int64) int64 { return w.first + ceilDiv(value, w.limit.Permit) }

// Back writes the word into the state that it was made of, as of now, and returns when that equals a fresh one, in microseconds since
// the epoch.
func (w *Word) Back(value, now int64, s *State) (freshAt int64) {
	l := w.limit
	if l.Kind != TokenBucket {
		if s.More != nil {
			s.More.Own += value - s.Used
		}
		s.Used = value
		return w.reset
	}
	s.At, s.Used, s.Charged = now, 0, w.position(value)
	if high := now - w.from; high < math.MaxInt64/l.Refill {
		s.Used = max(0, value-high*l.Refill)
	}
	return now + ceilDiv(s.Used, l.Refill)
}
