package algorithm

import "errors"

// Equal calls that are made together are decided by one script. It charges as many as fit, first
// come first served, and replies with the state that it found. The answer to each call follows from
// that.

// FastScript returns the script for calls that have one counter, with this limit, or nil if the
// algorithm has none. The script takes half the time of decide_equal.lua, and leaves uncommon cases
// to it.
func (l *Limit) FastScript() *Script { return registry[l.Kind].lua.alone }

// FastArg returns the argument of the fast script for this number of calls of a cost. The argument
// for one call of cost 1 is prepared.
func (l *Limit) FastArg(cost, calls int64) any {
	if cost == 1 && calls == 1 {
		return l.fast
	}
	return registry[l.Kind].fastArg(l, cost, calls)
}

// Uncommon is the reply of a fast script that leaves the case to decide_equal.lua.
const Uncommon = "-1"

// errReply is the error of a reply that none of our scripts gives.
var errReply = errors.New("not a reply of this script")

// Found is what a script that decides equal calls together found: the time, and a counter's state
// before the calls.
type Found struct {
	Now   int64 // microseconds since the epoch; 0 if the answer does not depend on it, and it is not known
	State State
	all   bool // all calls passed

	more   More // room for the state's
	window subWindowed
	rate   Rate
}

// ReadFast reads the reply of a fast script to this number of calls of a cost.
func (l *Limit) ReadFast(reply string, cost, calls int64, f *Found) error {
	if err := registry[l.Kind].readFast(l, reply, cost, calls, f); err != nil {
		return err
	}
	return f.sane()
}

// ReadState reads the state of a counter as Redis stores it, for algorithms whose state is a
// string. "" is the state of an unused counter.
func (l *Limit) ReadState(text string, f *Found) error {
	f.State, f.all = State{}, false
	if text != "" {
		if err := registry[l.Kind].readState(l, text, f); err != nil {
			return err
		}
	}
	return f.sane()
}

// sane returns an error if a number is out of the range that scripts write.
func (f *Found) sane() error {
	s := &f.State
	if f.Now >= never || s.At >= never || s.Used > maxUnits || s.Charged > maxUnits || s.Born >= never {
		return errReply
	}
	return nil
}

// Fit returns how many of this number of equal calls fit, one after the other.
func (f *Found) Fit(c *Counter, calls int64) int64 {
	if f.all {
		return calls
	}
	var v Verdict
	c.Limit.Look(&f.State, f.Now, 0, false, &v)
	switch {
	case c.Charges():
		return min(calls, v.Remaining/c.Cost)
	case v.RetryAfter > 0: // a pause
		return 0
	}
	return calls
}

// Nth sets v to the answer to one of several equal calls. The first passed of them passed, and
// behind of them came before this one. Nth changes the state that was found.
func (f *Found) Nth(c *Counter, behind, passed int64, v *Verdict) {
	if behind < passed { // charging all at once leaves the same state as one by one
		c.Limit.Decide(&f.State, f.Now, (behind+1)*c.Cost, "", v)
		v.Taken = min(v.Taken, c.Cost) // its own part
		return
	}
	if passed > 0 {
		c.Limit.Decide(&f.State, f.Now, passed*c.Cost, "", v)
	}
	c.Limit.Look(&f.State, f.Now, c.Cost, true, v)
}

// fastArgs packs the args of a fast function: the cost of all calls together, the cost of one call,
// and up to four numbers of the limit.
func fastArgs(asked, cost int64, limit ...int64) string {
	var args [6 * 7]byte
	putNumber(&args, 0, asked)
	putNumber(&args, 1, cost)
	for i, n := range limit {
		putNumber(&args, 2+i, n)
	}
	return string(args[:])
}

// putNumber writes a number as struct.pack('<I7') does.
func putNumber(args *[6 * 7]byte, at int, n int64) {
	for i := range 7 {
		args[7*at+i] = byte(n >> (8 * i))
	}
}

// littleEndian reads an unsigned integer of up to seven bytes.
func littleEndian(text string) (n int64) {
	for i := len(text) - 1; i >= 0; i-- {
		n = n<<8 | int64(text[i])
	}
	return n
}
