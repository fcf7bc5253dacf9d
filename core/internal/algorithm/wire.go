package algorithm

import (
	"fmt"
	"slices"
	"strconv"
)

// The arguments of decide.lua, and of the scripts that take such arguments, are written, and their
// replies read, here. The head of each script's file describes its KEYS, ARGV and reply. found.go does
// it for the fast scripts, and many.go for those on many keys.

// yes and no are boxed once for all.
var yes, no any = int64(1), int64(0)

// AppendDecide appends what the script of DecideScript takes. at is about now, in microseconds.
func AppendDecide(argv []any, counters []Counter, charge bool, at int64) []any {
	argv = appendOverrides(argv, counters)
	argv = appendCounters(append(argv, boxed(charge)), counters, at)
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

// AppendEqual appends the arguments of EqualScript's script for this number of calls.
func AppendEqual(argv []any, counters []Counter, calls, at int64) []any {
	return appendCounters(append(appendOverrides(argv, counters), calls), counters, at)
}

// AppendUpTo appends what the script of UpToScript takes.
func AppendUpTo(argv []any, counters []Counter, at int64) []any {
	return appendCounters(appendOverrides(argv, counters), counters, at)
}

// appendOverrides appends what override.lua takes before the args of its driver. It appends nothing
// if no counter may have an override.
func appendOverrides(argv []any, counters []Counter) []any {
	var room [4]*OverrideQuery
	queries := AppendQueries(room[:0], counters)
	if len(queries) == 0 {
		return argv
	}
	argv = append(argv, int64(len(queries)))
	for _, q := range queries {
		argv = append(argv, q.Limit.span, q.Limit.mostPermits(), boxed(q.Limit.Properties().Burst))
	}
	for i := range counters {
		c := &counters[i]
		argv = append(argv, int64(slices.Index(queries, c.Override)+1), boxed(c.Own), boxed(c.CountsIfOverridden))
	}
	return argv
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
	if c.Override != nil {
		argv = appendOverrides(argv, []Counter{*c})
	}
	return c.Limit.appendArgs(append(argv, patience, c.Cost), "", 0)
}

// AppendGiveBack appends what the script of GiveBackScript takes.
func AppendGiveBack(argv []any, charges []Charge) []any {
	if charges[0].Record != nil {
		argv = append(argv, RecordLife)
	}
	for i := range charges {
		c := &charges[i]
		argv = append(argv, c.Limit.tag, c.Cost, c.At, c.Position, c.Given, boxed(c.InDebt))
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

// AppendImpose appends what ban_impose.lua takes.
func AppendImpose(argv []any, span int64) []any { return append(argv, span) }

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
	n := numbers{left: readOverrides(reply, counters)}
	now := n.next()
	for i := range verdicts {
		verdicts[i] = Verdict{At: now, RetryAfter: n.next(), Remaining: n.next(), ResetAfter: n.next(), Position: n.next()}
		if !counters[i].ShowsDebt {
			verdicts[i].Remaining = max(0, verdicts[i].Remaining)
		}
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
	MarkUncharged(counters, verdicts)
	Obey(counters) // the costs are known only now
	if charge && Passes(counters, verdicts) {
		for i := range counters {
			verdicts[i].Taken = counters[i].takes(&verdicts[i])
		}
	}
	answerSkipped(counters, verdicts, now, ToDecide)
	return nil
}

// readOverrides reads what override.lua appended to the reply of its driver, and returns the
// driver's reply.
func readOverrides(reply []any, counters []Counter) (rest []any) {
	var room [4]*OverrideQuery
	queries := AppendQueries(room[:0], counters)
	if len(queries) == 0 {
		return reply
	}
	end := len(reply) - 4*len(queries)
	if end < 1 {
		return nil // not a valid reply
	}
	n := numbers{left: reply[end:]}
	for _, q := range queries {
		found := FoundOverride{What: OverrideKind(n.next()), Ends: n.next(), Max: n.next(), Burst: n.next()}
		if !q.Answer(found) || n.wrong {
			return nil
		}
	}
	return reply[:end]
}

// ReadUpTo reads what the script of UpToScript replied.
func ReadUpTo(reply []any, counters []Counter, verdicts []Verdict) (granted int64, err error) {
	n := numbers{left: readOverrides(reply, counters)}
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
	if answerSkipped(counters, verdicts, now, ToChargeUp) {
		granted = counters[0].Cost
	}
	return granted, nil
}

// ReadEqual reads the reply of EqualScript's script, and applies the override that it found. If the
// override takes the counters out of the decision, all calls get the same answer: ReadEqual stores
// it in the verdicts, and reports that the calls are settled.
func ReadEqual(reply []any, counters []Counter, found []Found, verdicts []Verdict) (settled bool, err error) {
	n := numbers{left: readOverrides(reply, counters)}
	now := n.next()
	if n.wrong || now <= 0 || len(n.left) != len(counters) {
		return false, errReply
	}
	if counters[0].Override != nil {
		if applied := ApplyOverrides(counters, ToDecide); !applied.Decides(counters, 0) {
			for i := range counters {
				verdicts[i] = applied.Answer(&counters[i], now)
			}
			return true, nil
		}
	}
	for i := range counters {
		state, ok := n.left[i].(string)
		if !ok {
			return false, errReply
		}
		found[i].Now = now
		if err := counters[i].Limit.ReadState(state, &found[i]); err != nil {
			return false, err
		}
	}
	return false, nil
}

// ReadReserved reads what the script of ReserveScript replied.
func ReadReserved(reply []any, c *Counter) (Verdict, error) {
	counters := [1]Counter{*c}
	n := numbers{left: readOverrides(reply, counters[:])}
	verdicts := [1]Verdict{{
		At: n.next(), RetryAfter: n.next(), Remaining: n.next(), ResetAfter: n.next(), Wait: n.next(), Position: n.next(),
	}}
	if n.wrong || len(n.left) > 0 {
		return Verdict{}, fmt.Errorf("the script replied %.200v for a reservation", reply)
	}
	verdicts[0].Taken = c.takes(&verdicts[0])
	answerSkipped(counters[:], verdicts[:], verdicts[0].At, ToReserve)
	*c = counters[0]
	return verdicts[0], nil
}

// ReadImposed reads what ban_impose.lua replied: when the ban ends, in microseconds since the epoch,
// and whether that is later than before.
func ReadImposed(reply []any) (ends int64, changed bool, err error) {
	n := numbers{left: reply}
	lasts, later, now := n.next(), n.next(), n.next()
	if n.wrong || len(n.left) > 0 {
		return 0, false, fmt.Errorf("the script replied %.200v for a ban", reply)
	}
	return now + lasts, later == 1, nil
}
