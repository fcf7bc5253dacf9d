package algorithm

import "strconv"

// Found is what a script found of a counter: its state before the call, and how many units it charged. Its
// other fields are room for the state.
type Found struct {
	State   State
	charged int64 // units
	unit    int64 // permits of a unit
	now     int64

	more    More
	window  subWindowed
	rate    Rate
	log     entryLog
	entries [2]Entry
}

// read reads a script's answer for a counter: how many units of so many permits it charged, and the state
// afterwards, or what the algorithm replies instead.
func (f *Found) read(l *Limit, unit int64, charged, text string, now int64) (err error) {
	f.charged, err = strconv.ParseInt(charged, 10, 64)
	f.unit, f.now = unit, now
	switch {
	case err != nil:
		return errReply
	case f.charged == -1:
		return ErrForeign
	case f.charged == -2:
		return ErrOtherDay
	}
	return f.readState(l, text)
}

// permits returns how many permits the script charged.
func (f *Found) permits() int64 { return f.charged * f.unit }

// readState reads a state that was left after permits were charged, and sets the state to the one before.
func (f *Found) readState(l *Limit, text string) error {
	f.State = State{}
	if text != "" {
		if err := registry[l.Kind].readState(l, text, f); err != nil {
			return err
		}
	} else if f.charged != 0 && registry[l.Kind].HasPermits() {
		return errReply
	}
	s := &f.State
	if s.At >= never || s.Used < 0 || s.Used > maxUnits || s.Charged < 0 || s.Charged > maxUnits || s.Born >= never {
		return errReply
	}
	return nil
}

// fit returns how many of this number of equal calls fit, one after the other.
func (f *Found) fit(c *Counter, now, calls int64) int64 {
	var v Verdict
	switch {
	case c.Charges():
		c.Limit.Look(&f.State, now, 0, true, &v)
		return min(calls, v.Remaining/c.Cost)
	case !c.Limit.Properties().HasPermits():
		if c.Limit.Look(&f.State, now, 0, true, &v); v.RetryAfter > 0 {
			return 0
		}
	}
	return calls
}

// nth sets v to the answer to one of several equal calls. The first passed of them passed, and behind of
// them came before this one. It changes the state that was found.
func (f *Found) nth(c *Counter, now, behind, passed int64, v *Verdict) {
	if behind < passed { // charging all at once leaves the same state as one by one
		c.Limit.Decide(&f.State, now, (behind+1)*c.Cost, c.Mark, v)
		v.Taken = min(v.Taken, c.Cost) // its own part
		return
	}
	if passed > 0 {
		c.Limit.Decide(&f.State, now, passed*c.Cost, c.Mark, v)
	}
	c.Limit.Look(&f.State, now, c.Cost, true, v)
}
