package algorithm

import "fmt"

// script returns the script for a change of the bill.
func (b *Bill) script() *Script { return SettleScript(ofCharges(b.Charges)) }

// appendChange appends the arguments of settle.lua. at is about now, in microseconds.
func (b *Bill) appendChange(argv []any, c BillChange, at int64) []any {
	argv = append(argv, pack7(one(c.Settle), c.Permits, b.Charges[0].At, b.Estimate()))
	for i := range b.Charges {
		l := b.Charges[i].Limit
		most := l.Max + l.Debt(b.Share)
		step := registry[l.Kind].args(l, most, at)
		args := registry[l.Kind].args(l, l.Max, at)
		argv = append(argv, l.tag, pack7(b.Charges[i].Position, most, l.unit, step[0], step[1], step[2], step[3], 0), pack7(args[:]...))
	}
	return argv
}

// readChange reads the reply of settle.lua, and makes the same change of what the script found.
func (b *Bill) readChange(reply []string, c BillChange) (a BillAnswer, err error) {
	now, err := ReadTime(reply)
	if err == nil && len(reply) == 1 {
		return a, ErrOtherDay
	}
	wrong := func() (BillAnswer, error) {
		return BillAnswer{}, fmt.Errorf("the script replied %.99q for a bill of %d counters", reply, len(b.Charges))
	}
	if err != nil || len(reply) != 2+len(b.Charges) {
		return wrong()
	}
	if reply[1] == "" {
		return a, nil
	}
	record, ok := readBill(reply[1], len(b.Charges))
	if !ok {
		return wrong()
	}
	found := foundBill{b, now, make([]Found, len(b.Charges))}
	for i := range b.Charges {
		if err := found.of[i].readState(b.Charges[i].Limit, reply[2+i]); err != nil {
			return wrong()
		}
	}
	return b.Change(&State{More: &More{other: &other{bill: record}}}, c, now, &found), nil
}

// readBill reads the record of a bill with a number of counters: see settle.lua.
func readBill(text string, counters int) (r *billRecord, ok bool) {
	const head = 15
	if len(text) < head {
		return nil, false
	}
	r = &billRecord{ends: littleEndian(text[:7]), settled: text[7] == 1, used: littleEndian(text[8:head])}
	if r.settled {
		if len(text) > head {
			r.above = littleEndian(text[head:])
		}
		return r, len(text) == head || len(text) == head+7
	}
	number := func() (n int64) {
		n, text = littleEndian(text[:7]), text[7:]
		return n
	}
	size := 7 + 14*counters
	if text = text[head:]; len(text) < 7*counters || (len(text)-7*counters)%size != 0 {
		return nil, false
	}
	for range counters {
		r.charged = append(r.charged, number())
	}
	for len(text) > 0 {
		a := addition{at: number()}
		for range counters {
			a.permits, a.position = append(a.permits, number()), append(a.position, number())
		}
		r.additions = append(r.additions, a)
	}
	return r, true
}

// foundBill holds the counters of a bill as a script found them.
type foundBill struct {
	bill *Bill
	now  int64
	of   []Found
}

// Charge implements BillCounters.
func (f *foundBill) Charge(i int, cost int64) (v Verdict) {
	f.bill.Charges[i].Limit.ChargeInDebt(&f.of[i].State, f.now, cost, f.bill.Share, &v)
	return v
}

// GiveBack implements BillCounters.
func (f *foundBill) GiveBack(i int, c *Charge) (lost int64) {
	empty, lost := c.GiveBack(&f.of[i].State, f.now)
	if empty {
		f.of[i].State = State{}
	}
	return lost
}
