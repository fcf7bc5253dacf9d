package algorithm

import (
	"fmt"
	"strconv"
)

// The arguments of decide.lua, and of the scripts that take such arguments, are written, and their
// replies read, here. The head of each script's file describes its KEYS, ARGV and reply. found.go does
// it for the fast scripts, and many.go for those on many keys.

// yes and no are boxed once for all.
var yes, no any = int64(1), int64(0)

// AppendDecide appends what the script of DecideScript takes. at is about now, in microseconds.
func AppendDecide(argv []any, counters []Counter, charge bool, at int64) []any {
	return appendCounters(append(argv, boxed(charge)), counters, at)
}

// AppendEqual appends the arguments of EqualScript's script for this number of calls.
func AppendEqual(argv []any, counters []Counter, calls, at int64) []any {
	return appendCounters(append(argv, calls), counters, at)
}

// AppendUpTo appends what the script of UpToScript takes.
func AppendUpTo(argv []any, counters []Counter, at int64) []any {
	return appendCounters(argv, counters, at)
}

func boxed(is bool) any {
	if is {
		return yes
	}
	return no
}

func appendCounters(argv []any, counters []Counter, at int64) []any {
	for i := range counters {
		c := &counters[i]
		tag := c.Limit.tag
		switch {
		case c.Lenient && c.Group != 0:
			tag = "~" + strconv.Itoa(int(c.Group)) + c.Limit.Properties().Tag
		case c.Lenient:
			tag = c.Limit.dry
		}
		argv = append(argv, tag, c.Cost)
		argv = c.Limit.appendArgs(argv, c.Mark, at)
	}
	return argv
}

func (l *Limit) appendArgs(argv []any, mark string, at int64) []any {
	args := registry[l.Kind].args(l, mark, at)
	return append(argv, args[:]...)
}

// AppendReserve appends what the script of ReserveScript takes.
func AppendReserve(argv []any, c *Counter, patience int64) []any {
	return c.Limit.appendArgs(append(argv, patience, c.Cost), "", 0)
}

// AppendGiveBack appends what the script of GiveBackScript takes.
func AppendGiveBack(argv []any, charges []Charge) []any {
	if charges[0].Record != nil {
		argv = append(argv, RecordLife)
	}
	for i := range charges {
		c := &charges[i]
		argv = append(argv, c.Limit.tag, c.Cost, c.At, c.Position, boxed(c.Whole), boxed(c.InDebt))
		argv = c.Limit.appendArgs(argv, c.Mark, c.At)
	}
	return argv
}

// ReadGivenBack reads how many permits give_back.lua lost, as Charge.GiveBack counts them.
func ReadGivenBack(reply []any) (lost int64, err error) {
	n := numbers{left: reply}
	_, lost = n.next(), n.next()
	if n.wrong || len(n.left) > 0 || lost < 0 {
		return 0, fmt.Errorf("the script replied %.200v for a refund", reply)
	}
	return lost, nil
}

// AppendRenew appends what concurrency_renew.lua takes for slots of one holder.
func AppendRenew(argv []any, slots []Charge) []any {
	argv = append(argv, slots[0].Mark)
	for i := range slots {
		argv = append(argv, slots[i].Limit.Window)
	}
	return argv
}

// numbers reads integers from a reply.
type numbers struct {
	left  []any
	wrong bool // one of the values was not an integer
}

func (n *numbers) next() (number int64) {
	if len(n.left) == 0 {
		n.wrong = true
		return 0
	}
	number, ok := n.left[0].(int64)
	n.left, n.wrong = n.left[1:], n.wrong || !ok
	return number
}

// RepeatAt returns Redis's time if a script that decides asks to be called again with it, because
// the arguments of a calendar were those of another time; otherwise 0.
func RepeatAt(reply []any) (now int64) {
	if len(reply) == 1 {
		now, _ = reply[0].(int64)
	}
	return now
}

// ReadDecided reads the reply of DecideScript's script to a call. charge reports whether the
// call could be charged.
func ReadDecided(reply []any, counters []Counter, charge bool, verdicts []Verdict) error {
	n := numbers{left: reply}
	now := n.next()
	for i := range verdicts {
		verdicts[i] = Verdict{At: now, RetryAfter: n.next(), Remaining: n.next(), ResetAfter: n.next(), Position: n.next()}
		if !counters[i].ShowsDebt {
			verdicts[i].Remaining = max(0, verdicts[i].Remaining)
		}
	}
	if n.wrong || len(n.left) > 0 {
		return fmt.Errorf("the script replied %.200v for %d counters", reply, len(verdicts))
	}
	MarkUncharged(counters, verdicts)
	if charge && Passes(counters, verdicts) {
		for i := range counters {
			verdicts[i].Taken = counters[i].takes(&verdicts[i])
		}
	}
	return nil
}

// ReadUpTo reads what the script of UpToScript replied.
func ReadUpTo(reply []any, counters []Counter, verdicts []Verdict) (granted int64, err error) {
	n := numbers{left: reply}
	now, granted := n.next(), n.next()
	for i := range verdicts {
		verdicts[i] = Verdict{At: now, RetryAfter: n.next(), Remaining: n.next(), ResetAfter: n.next(), Position: n.next()}
	}
	if n.wrong || len(n.left) > 0 {
		return 0, fmt.Errorf("the script replied %.200v for %d counters", reply, len(verdicts))
	}
	for i := range verdicts {
		verdicts[i].Taken = granted
	}
	return granted, nil
}

// ReadEqual reads the reply of EqualScript's script.
func ReadEqual(reply []any, counters []Counter, found []Found) error {
	n := numbers{left: reply}
	now := n.next()
	if n.wrong || now <= 0 || len(n.left) != len(counters) {
		return errReply
	}
	for i := range counters {
		state, ok := n.left[i].(string)
		if !ok {
			return errReply
		}
		found[i].Now = now
		if err := counters[i].Limit.ReadState(state, &found[i]); err != nil {
			return err
		}
	}
	return nil
}

// ReadReserved reads what the script of ReserveScript replied.
func ReadReserved(reply []any, c *Counter) (Verdict, error) {
	n := numbers{left: reply}
	verdicts := [1]Verdict{{
		At: n.next(), RetryAfter: n.next(), Remaining: n.next(), ResetAfter: n.next(), Wait: n.next(), Position: n.next(),
	}}
	if n.wrong || len(n.left) > 0 {
		return Verdict{}, fmt.Errorf("the script replied %.200v for a reservation", reply)
	}
	verdicts[0].Taken = c.takes(&verdicts[0])
	return verdicts[0], nil
}
