package algorithm

import (
	"fmt"
	"slices"
)

// Change is what is changed of counters after calls, by one run of a script. A store answers by its last fields.
type Change struct {
	Kind    ChangeKind
	Charges []Charge
	// Turn reports whether the only charge is a turn. What callers wait behind then stays, and is not lost,
	// because it is given back later.
	Turn  bool
	Key   []byte // of the pause
	Pause *Pause // that begins
	Bill  *Bill
	To    BillChange // what is asked of the bill

	Lost   int64 // how many permits may still have counted but were not given back
	Paused Paused
	Billed BillAnswer
}

// ChangeKind says what is changed.
type ChangeKind uint8

// The kinds.
const (
	GivesBack   ChangeKind = iota // Charges are given back, as far as they still count
	Renews                        // the slots of Charges are kept for another window each
	Pauses                        // Pause begins, or the present pause becomes longer
	EndsPause                     // the refusals before a pause that is over are forgotten
	ChangesBill                   // Bill gets an addition, or is settled
)

// Script returns the script for the change.
func (c *Change) Script() *Script {
	switch c.Kind {
	case ChangesBill:
		return c.Bill.script()
	case Pauses, EndsPause:
		return ChangeScript(1 << Pausing)
	}
	return ChangeScript(ofCharges(c.Charges))
}

// Len returns the number of keys that are changed, without that of a record.
func (c *Change) Len() int { return max(1, len(c.charges())) }

// charges returns the charges on the counters that are changed.
func (c *Change) charges() []Charge {
	if c.Bill != nil {
		return c.Bill.Charges
	}
	return c.Charges
}

// KeyAt returns the key at an index below Len.
func (c *Change) KeyAt(i int) []byte {
	if of := c.charges(); len(of) > 0 {
		return of[i].Key
	}
	return c.Key
}

// Record returns the key of the record by which the change is made once, or that of the bill, or nil.
func (c *Change) Record() []byte {
	switch {
	case c.Bill != nil:
		return c.Bill.Key
	case len(c.Charges) > 0:
		return c.Charges[0].Record
	}
	return nil
}

// Dated reports whether the arguments of the script depend on the time: see Limit.Dated.
func (c *Change) Dated() bool {
	return c.Bill != nil && slices.ContainsFunc(c.Bill.Charges, func(of Charge) bool { return of.Limit.Dated() })
}

// Append appends the arguments of the script. at is about now, in microseconds.
func (c *Change) Append(argv []any, at int64) []any {
	if c.Bill != nil {
		return c.Bill.appendChange(argv, c.To, at)
	}
	kept := ""
	if c.Record() != nil {
		kept = pack7(RecordLife)
	}
	argv = append(argv, kept)
	switch c.Kind {
	case Pauses:
		p := c.Pause
		return append(argv, PauseLimit.tag, pack7(1, p.Span, one(p.Refused), p.Base, p.Longest, 0, 0, 0, 0)+p.By)
	case EndsPause:
		return append(argv, PauseLimit.tag, pack7(0, 0, 0, 0, 0, 0, 0, 0, 0))
	}
	for i := range c.Charges {
		of := &c.Charges[i]
		args := registry[of.Limit.Kind].args(of.Limit, of.Limit.Max, of.At)
		cost := of.Cost
		if of.Limit.Properties().Slots {
			cost = one(c.Kind == Renews)
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

// Read reads the reply of the script, and makes the same change of what it found.
func (c *Change) Read(reply []string) (err error) {
	switch c.Kind {
	case ChangesBill:
		c.Billed, err = c.Bill.readChange(reply, c.To)
		c.Lost = c.Billed.Lost
	case GivesBack:
		c.Lost, err = c.readLost(reply)
	case Pauses:
		c.Paused, err = c.readPaused(reply)
	}
	return err
}

// readLost is Read for charges that are given back. It returns how many permits may still have counted but
// were not given back.
func (c *Change) readLost(reply []string) (lost int64, err error) {
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

// readPaused is Read for a pause that begins.
func (c *Change) readPaused(reply []string) (p Paused, err error) {
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
