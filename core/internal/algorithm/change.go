package algorithm

import "fmt"

// Change is what is changed of counters after calls, by one run of change.lua: charges are given back, slots
// are renewed, or a pause begins or ends.
type Change struct {
	Charges []Charge // to give back or, of slots, to renew
	Renews  bool     // the slots are renewed, not given back
	// Key is that of a pause, which Pause begins or makes longer. If Pause is nil, the refusals before a pause
	// that is over are forgotten.
	Key   []byte
	Pause *Pause
}

// Script returns the script for the change.
func (c *Change) Script() *Script {
	if c.Key != nil {
		return ChangeScript(1 << Pausing)
	}
	return ChangeScript(ofCharges(c.Charges))
}

// Len returns the number of keys that are changed.
func (c *Change) Len() int { return max(1, len(c.Charges)) }

// KeyAt returns the key at an index below Len.
func (c *Change) KeyAt(i int) []byte {
	if c.Key != nil {
		return c.Key
	}
	return c.Charges[i].Key
}

// Record returns the key of the record by which the change is made once, or nil.
func (c *Change) Record() []byte {
	if len(c.Charges) == 0 {
		return nil
	}
	return c.Charges[0].Record
}

// Append appends the arguments of change.lua.
func (c *Change) Append(argv []any) []any {
	kept := ""
	if c.Record() != nil {
		kept = pack7(RecordLife)
	}
	argv = append(argv, kept)
	switch {
	case c.Pause != nil:
		p := c.Pause
		return append(argv, PauseLimit.tag, pack7(1, p.Span, one(p.Refused), p.Base, p.Longest, 0, 0, 0, 0)+p.By)
	case c.Key != nil:
		return append(argv, PauseLimit.tag, pack7(0, 0, 0, 0, 0, 0, 0, 0, 0))
	}
	for i := range c.Charges {
		of := &c.Charges[i]
		args := registry[of.Limit.Kind].args(of.Limit, of.Limit.Max, of.At)
		cost := of.Cost
		if of.Limit.Properties().Slots {
			cost = one(c.Renews)
		}
		packed := pack7(cost, of.At, of.Position, one(of.Whole), one(of.InDebt), args[0], args[1], args[2], args[3])
		argv = append(argv, of.Limit.tag, packed+of.Mark)
	}
	return argv
}

func one(is bool) int64 {
	if is {
		return 1
	}
	return 0
}

// ReadLost reads the reply of change.lua to charges that are given back, and returns how many permits may
// still have counted but were not given back.
func (c *Change) ReadLost(reply []string) (lost int64, err error) {
	now, err := ReadTime(reply)
	if err != nil || len(reply) != 1+len(c.Charges) {
		return 0, fmt.Errorf("the script replied %.99q for %d charges", reply, len(c.Charges))
	}
	var f Found
	for i := range c.Charges {
		of := &c.Charges[i]
		if reply[i+1] == "" { // there was nothing to give back to, or nothing is lost by this algorithm
			continue
		}
		if err := f.readState(of.Limit, reply[i+1]); err != nil {
			return 0, err
		}
		_, missed := of.GiveBack(&f.State, now)
		lost += missed
	}
	return lost, nil
}

// ReadPaused reads the reply of change.lua to a pause that begins.
func (c *Change) ReadPaused(reply []string) (p Paused, err error) {
	now, err := ReadTime(reply)
	if err != nil || len(reply) != 2 {
		return p, fmt.Errorf("the script replied %.99q for a pause", reply)
	}
	var f Found
	if err := f.readState(&PauseLimit, reply[1]); err != nil {
		return p, err
	}
	p, _ = f.State.Pause(now, c.Pause)
	return p, nil
}
