package algorithm

// Look stores a counter's answer to a cost in v. It changes nothing, with one exception: if the
// call may charge and the clock has stepped back since the state was written, Look anchors the
// state, as the step in Lua does.
func (l *Limit) Look(s *State, now, cost int64, charge bool, v *Verdict) {
	d := &registry[l.Kind]
	t := moment{now, d.place(now, l)}
	s = l.look(d, s, t, cost, charge, v)
	v.ResetAfter = d.resetAfter(s, t, l)
}

// Look is [Limit.Look] for the counter's cost, with its debt if the counter shows it.
func (c *Counter) Look(s *State, now int64, charge bool, v *Verdict) {
	c.Limit.Look(s, now, c.Cost, charge, v)
	if c.ShowsDebt && !charge {
		v.Remaining = c.Limit.balance(s, now)
	}
}

// balance returns how many permits are left. It is negative if more are in use than the limit lets
// through.
func (l *Limit) balance(s *State, now int64) int64 {
	d := &registry[l.Kind]
	t := moment{now, d.place(now, l)}
	if s.At > t.place {
		s = l.anchored(s, t, false)
	}
	left, _ := d.look(s, t, l, 0)
	return left
}

// look is Look without the ResetAfter, because a charge changes that. It returns the state on which
// the answer is based.
func (l *Limit) look(d *registered, s *State, t moment, cost int64, charge bool, v *Verdict) *State {
	counts := cost > 0 || !d.HasPermits()
	if s.At > t.place {
		s = l.anchored(s, t, charge && counts)
	}
	remaining, retryAfter := d.look(s, t, l, cost)
	if !counts { // a cost of 0 always fits, even if the limit was lowered below the use
		retryAfter = 0
	}
	*v = Verdict{At: t.now, Remaining: max(0, remaining), RetryAfter: retryAfter}
	return s
}

// anchored moves the state back to an earlier time and returns it. If the state must not be
// changed, anchored returns a changed copy.
func (l *Limit) anchored(s *State, t moment, change bool) *State {
	if !change {
		s = s.clone()
	}
	registry[l.Kind].anchor(s, t, l)
	return s
}

// Charge takes a cost that fits according to a [Limit.Look] at the same time. It returns for how
// long the state counts afterwards.
func (l *Limit) Charge(s *State, now, cost int64, mark string, v *Verdict) (lives int64) {
	d := &registry[l.Kind]
	return v.charge(d.charge(s, moment{now, d.place(now, l)}, l, cost, mark), cost)
}

// charge completes a verdict with the effect of a charge.
func (v *Verdict) charge(e effect, cost int64) (lives int64) {
	v.ResetAfter, v.Position, v.Taken = e.resetAfter, e.position, cost
	v.Remaining -= cost
	return e.resetAfter
}

// Decide calls Look and charges the cost if it fits. It returns for how long the state counts
// afterwards, or 0 if nothing was charged.
func (l *Limit) Decide(s *State, now, cost int64, mark string, v *Verdict) (lives int64) {
	d := &registry[l.Kind]
	t := moment{now, d.place(now, l)}
	s = l.look(d, s, t, cost, true, v)
	if v.RetryAfter != 0 || cost == 0 || !d.HasPermits() {
		v.ResetAfter = d.resetAfter(s, t, l)
		return 0
	}
	return v.charge(d.charge(s, t, l, cost, mark), cost)
}

// GiveBack gives back a charge, as far as it still counts. It reports whether the state is empty
// now, so that it can be forgotten, and how many permits were lost; see definition.
func (c *Charge) GiveBack(s *State, now int64) (empty bool, lost int64) {
	d := registry[c.Limit.Kind]
	lost = d.giveBack(s, now, c)
	return s.Used == 0 && len(s.entries()) == 0, lost
}

// Reserve takes a cost at the next turn, if that comes within patience. The turn comes when one
// permit is available; the rest of a large cost delays the next caller. Reserve returns for how
// long the state counts afterwards, or 0 if nothing was taken.
func (l *Limit) Reserve(s *State, now, cost, patience int64) (v Verdict, lives int64) {
	if turns := registry[l.Kind].turns; turns != nil {
		return turns.reserve(l, s, now, cost, patience)
	}
	return Verdict{Err: errNotReserved}, 0
}

// Renew keeps a slot for another window. If the slot was lost meanwhile, because its holder was cut
// off or the store forgot it, Renew takes it again, even above the limit: its call is still in
// flight and must count.
func (l *Limit) Renew(s *State, now int64, holder string) {
	if slots := registry[l.Kind].slots; slots != nil {
		slots.renew(l, s, now, holder)
	}
}

// Records returns the calls that count now, newest first. No record is later than now, even if the
// clock stepped back.
func (l *Limit) Records(s *State, now int64) []Record {
	if records := registry[l.Kind].records; records != nil {
		return records.records(l, s, now)
	}
	return nil
}

// Passes reports whether the call passes: no counter refuses it, and the caller's own context has
// not ended.
func Passes(counters []Counter, verdicts []Verdict) bool {
	for i := range verdicts {
		if verdicts[i].Ended != nil || counters[i].Refuses(&verdicts[i]) {
			return false
		}
	}
	return true
}

// RunEnd returns the end of the run of counters that begins at an index and is one call: see
// Counter.Behind.
func RunEnd(counters []Counter, from int) (end int) {
	for end = from + 1; end < len(counters) && counters[end].Behind == counters[from].Behind; end++ {
	}
	return end
}

// Fits reports whether a call fits into all of its counters.
func Fits(verdicts []Verdict) bool {
	for i := range verdicts {
		if verdicts[i].RetryAfter != 0 {
			return false
		}
	}
	return true
}
