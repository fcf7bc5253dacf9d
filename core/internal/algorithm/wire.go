package algorithm

import "fmt"

// The arguments and replies of the scripts are written and read here, and nowhere else. KEYS, ARGV
// and the reply of each script are described at the head of its file.

// yes and no are boxed once for all.
var yes, no any = int64(1), int64(0)

// AppendDecide appends what decide.lua takes. at is about now, in microseconds.
func AppendDecide(argv []any, counters []Counter, charge bool, at int64) []any {
	flag := no
	if charge {
		flag = yes
	}
	argv = appendCounters(append(argv, flag), counters, at)
	for i := range counters {
		if c := &counters[i]; registry[c.Limit.Kind].Watches {
			argv = append(argv, int64(len(c.Watched)))
			for _, at := range c.Watched {
				argv = append(argv, int64(at+1))
			}
		}
	}
	return argv
}

// AppendEqual appends what decide_equal.lua takes for so many calls.
func AppendEqual(argv []any, counters []Counter, calls, at int64) []any {
	return appendCounters(append(argv, calls), counters, at)
}

// AppendUpTo appends what decide_up_to.lua takes.
func AppendUpTo(argv []any, counters []Counter, at int64) []any {
	return appendCounters(argv, counters, at)
}

func appendCounters(argv []any, counters []Counter, at int64) []any {
	for i := range counters {
		c := &counters[i]
		tag := c.Limit.tag
		if c.Dry {
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

// AppendReserve appends what token_bucket_reserve.lua takes.
func AppendReserve(argv []any, c *Counter, patience int64) []any {
	return c.Limit.appendArgs(append(argv, patience, c.Cost), "", 0)
}

// AppendGiveBack appends what give_back.lua takes.
func AppendGiveBack(argv []any, charges []Charge) []any {
	for i := range charges {
		c := &charges[i]
		argv = append(argv, c.Limit.tag, c.Cost, c.At, c.Position, c.Given)
		argv = c.Limit.appendArgs(argv, c.Mark, c.At)
	}
	return argv
}

// AppendRenew appends what concurrency_renew.lua takes for slots of one holder.
func AppendRenew(argv []any, slots []Charge) []any {
	argv = append(argv, slots[0].Mark)
	for i := range slots {
		argv = append(argv, slots[i].Limit.Window)
	}
	return argv
}

// AppendRecords appends what sliding_log_records.lua takes.
func AppendRecords(argv []any, l *Limit) []any { return append(argv, l.Window) }

// AppendImpose appends what ban_impose.lua takes.
func AppendImpose(argv []any, span int64) []any { return append(argv, span) }

// numbers reads integers off a reply.
type numbers struct {
	left  []any
	wrong bool // one of them was none
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

// Untimely returns Redis's time if a script that decides asks to be called again with it, because
// the arguments of a calendar were those of another time; otherwise 0.
func Untimely(reply []any) (now int64) {
	if len(reply) == 1 {
		now, _ = reply[0].(int64)
	}
	return now
}

// ReadDecided reads what decide.lua replied.
func ReadDecided(reply []any, verdicts []Verdict) error {
	n := numbers{left: reply}
	now := n.next()
	for i := range verdicts {
		verdicts[i] = Verdict{At: now, RetryAfter: n.next(), Remaining: n.next(), ResetAfter: n.next(), Position: n.next()}
	}
	for len(n.left) > 0 && !n.wrong {
		if at := n.next(); at < 1 || at > int64(len(verdicts)) {
			n.wrong = true
		} else {
			verdicts[at-1].Struck = true
		}
	}
	if n.wrong {
		return fmt.Errorf("the script replied %.200v for %d counters", reply, len(verdicts))
	}
	return nil
}

// ReadUpTo reads what decide_up_to.lua replied.
func ReadUpTo(reply []any, verdicts []Verdict) (granted int64, err error) {
	n := numbers{left: reply}
	now, granted := n.next(), n.next()
	for i := range verdicts {
		verdicts[i] = Verdict{At: now, RetryAfter: n.next(), Remaining: n.next(), ResetAfter: n.next(), Position: n.next()}
	}
	if n.wrong || len(n.left) > 0 {
		return 0, fmt.Errorf("the script replied %.200v for %d counters", reply, len(verdicts))
	}
	return granted, nil
}

// ReadEqual reads what decide_equal.lua replied.
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

// ReadReserved reads what token_bucket_reserve.lua replied.
func ReadReserved(reply []any) (Verdict, error) {
	n := numbers{left: reply}
	v := Verdict{
		At: n.next(), RetryAfter: n.next(), Remaining: n.next(), ResetAfter: n.next(), Wait: n.next(), Position: n.next(),
	}
	if n.wrong || len(n.left) > 0 {
		return Verdict{}, fmt.Errorf("the script replied %.200v for a reservation", reply)
	}
	return v, nil
}

// ReadImposed reads what ban_impose.lua replied: whether the ban lasts longer than before.
func ReadImposed(reply []any) (changed bool, err error) {
	n := numbers{left: reply}
	_, longer := n.next(), n.next()
	if n.wrong || len(n.left) > 0 {
		return false, fmt.Errorf("the script replied %.200v for a ban", reply)
	}
	return longer == 1, nil
}

// ReadRecords reads what sliding_log_records.lua replied.
func ReadRecords(reply []any) ([]Record, error) {
	n, records := numbers{left: reply}, make([]Record, 0, len(reply)/3)
	for len(n.left) > 0 {
		r := Record{At: n.next(), Cost: n.next()}
		if len(n.left) == 0 {
			n.wrong = true
			break
		}
		note, ok := n.left[0].(string)
		n.left, n.wrong = n.left[1:], n.wrong || !ok
		r.Note = note
		records = append(records, r)
	}
	if n.wrong {
		return nil, fmt.Errorf("the script replied %d values for records, of which some are none", len(reply))
	}
	return records, nil
}
