package algorithm

import (
	"errors"
	"strconv"
)

// Op is what is asked of counters together.
type Op struct {
	Mode     Mode
	Counters []Counter
	// Calls is how many equal calls it stands for, if it charges.
	Calls int64
	// Share bounds the debt of InDebt: see Limit.Debt.
	Share float64
	// Patience is for how long the turn of InTurn may have to be awaited, in microseconds.
	Patience int64
	// Bill is where a call that passes is recorded as a bill, or nil. All counters then have one cost.
	Bill *OpenBill
	// Record is the key of a record by which the op is carried out once, or nil: see Charge.
	Record []byte
}

// Mode says what is done with the costs of an Op.
type Mode uint8

// The modes. All but InDebt charge all counters of a call, or none: see Counter.Behind.
const (
	Looks     Mode = iota // nothing is charged
	AllOrNone             // the costs are charged if they fit
	UpTo                  // as much as fits is charged, of a cost that is the same for all
	InDebt                // each cost is charged as far as the bound of the debt allows
	InTurn                // the cost is charged if its turn at a bucket, the only counter, comes within Patience
)

// The errors of replies.
var (
	// ErrForeign means that a key holds no counter.
	ErrForeign = errors.New("the key holds no counter")
	// ErrOtherDay means that the args were those of another day, so nothing was done. The op is to be
	// asked again, with the time of the reply.
	ErrOtherDay = errors.New("the clocks are in different days")
	// errDisagree means that the script charged something else than what follows from the states.
	errDisagree = errors.New("the script and this process disagree about what was charged")
	// errReply is the error of a reply that none of our scripts gives.
	errReply = errors.New("not a reply of this script")
)

// alone reports whether decide_one.lua decides.
func (o *Op) alone() bool { return len(o.Counters) == 1 && o.Recorded() == nil }

// Script returns the script that decides: decide.lua or decide_one.lua.
func (o *Op) Script() *Script {
	if o.alone() {
		return registry[o.Counters[0].Limit.Kind].lua.alone
	}
	return DecideScript(KindsOf(o.Counters))
}

// Append appends the arguments of the op's script. at is about now, in microseconds.
func (o *Op) Append(argv []any, at int64) []any {
	if o.alone() {
		return append(argv, o.argOf(&o.Counters[0], at))
	}
	argv = append(argv, o.record())
	for from, end := 0, 0; from < len(o.Counters); from = end {
		if end = RunEnd(o.Counters, from); o.Mode == InDebt {
			end = len(o.Counters)
		}
		argv = append(argv, header(1, end-from, o.place(from, end), o.Mode == InDebt))
		for i := from; i < end; i++ {
			argv = o.appendCounter(argv, &o.Counters[i], at)
		}
	}
	return argv
}

// The places of a call among those that belong together.
const (
	ofItsOwn = iota
	first
	behind // it is charged only if the first one passes
	beside
)

// place returns the place of a run of counters.
func (o *Op) place(from, end int) byte {
	switch {
	case end-from == len(o.Counters):
		return ofItsOwn
	case from == 0:
		return first
	case o.Counters[0].Behind == 0:
		return behind
	default:
		return beside
	}
}

func (o *Op) appendCounter(argv []any, c *Counter, at int64) []any {
	return append(argv, c.Limit.tag, o.argOf(c, at))
}

// argOf returns the packed arguments of a counter's step. Those for one call of cost 1 are prepared.
func (o *Op) argOf(c *Counter, at int64) any {
	l, ask, cost, most, patience := c.Limit, o.Calls, c.Cost, c.Limit.Max, int64(0)
	switch o.Mode {
	case Looks:
		ask = 0
	case AllOrNone:
		if cost == 1 && ask == 1 && c.Mark == "" && l.step != nil {
			return l.step
		}
	case UpTo:
		ask, cost = cost, 1
	case InDebt:
		most += l.Debt(o.Share)
		ask, cost = min(cost, most), 1
	case InTurn:
		most, patience = most+cost-1, o.Patience
	}
	if cost == 0 && l.Properties().HasPermits() {
		ask = 0
	}
	return l.stepArg(ask, cost, most, patience, at, c.Mark)
}

// stepArg packs the arguments of the limit's step.
func (l *Limit) stepArg(ask, cost, most, patience, at int64, mark string) string {
	cost = max(1, min(cost, max(l.Max, l.Reserved)+1)) // one more than fits is enough
	args := registry[l.Kind].args(l, most, at)
	return pack7(ask, cost*l.unit, args[0], args[1], args[2], args[3], patience) + mark
}

// record says how the op is recorded.
func (o *Op) record() any {
	switch {
	case o.Bill != nil:
		return pack7(o.Bill.Span, o.Counters[0].Cost)
	case o.Record != nil:
		return pack7(RecordLife, 0)
	}
	return ""
}

// Recorded returns the key of the record, or nil.
func (o *Op) Recorded() []byte {
	if o.Bill != nil {
		return o.Bill.Key
	}
	return o.Record
}

// header packs what precedes the counters of calls of one form.
func header(calls, counters int, place byte, each bool) any {
	return string([]byte{
		byte(calls), byte(calls >> 8), byte(calls >> 16), byte(counters), byte(counters >> 8), byte(counters >> 16), place, byte(one(each)),
	})
}

// pack7 packs numbers as struct.pack does with I7 for each.
func pack7(numbers ...int64) string {
	var room [10 * 7]byte
	packed := room[:0]
	for _, n := range numbers {
		packed = append(packed, byte(n), byte(n>>8), byte(n>>16), byte(n>>24), byte(n>>32), byte(n>>40), byte(n>>48))
	}
	return string(packed)
}

// littleEndian reads an unsigned integer of up to seven bytes.
func littleEndian(text string) (n int64) {
	for i := len(text) - 1; i >= 0; i-- {
		n = n<<8 | int64(text[i])
	}
	return n
}

// ReadTime reads the time at the beginning of a reply.
func ReadTime(reply []string) (now int64, err error) {
	if len(reply) == 0 {
		return 0, errReply
	}
	now, err = strconv.ParseInt(reply[0], 10, 64)
	if err != nil || now <= 0 || now >= never {
		return 0, errReply
	}
	return now, nil
}

// OtherDay returns the time of a reply of decide.lua or settle.lua if the args were those of another day: see
// ErrOtherDay. Otherwise it returns 0.
func OtherDay(reply []string) (now int64) {
	if len(reply) > 1 && !IsOtherDay(reply[1:]) {
		return 0
	}
	now, _ = ReadTime(reply)
	return now
}

// IsOtherDay reports whether the args of one of the counters were those of another day. Of each counter, the
// reply has two elements.
func IsOtherDay(reply []string) bool {
	for i := 0; i < len(reply); i += 2 {
		if reply[i] == "-2" {
			return true
		}
	}
	return false
}

// Read reads the reply of decide.lua for the counters of an op, without the time: two elements for each
// counter. The op stands for so many equal calls, of which ahead come first. Read sets the verdicts to
// those of the last of the op's own calls that passed, or of the first one if none did, and returns how
// many passed. For UpTo it sets the costs to how much was charged, or to 1 if nothing was. found is room
// for as many as there are counters.
func (o *Op) Read(reply []string, now, ahead, all int64, verdicts []Verdict, found []Found) (passed int64, err error) {
	if len(reply) != 2*len(o.Counters) {
		return 0, errReply
	}
	for i := range o.Counters {
		c, unit := &o.Counters[i], int64(1)
		if o.Mode != UpTo && o.Mode != InDebt {
			unit = max(1, c.Cost)
		}
		if err := found[i].read(c.Limit, unit, reply[2*i], reply[2*i+1], now); err != nil {
			return 0, err
		}
	}
	switch o.Mode {
	case Looks:
		for i := range o.Counters {
			o.Counters[i].Look(&found[i].State, now, false, &verdicts[i])
		}
		return 0, nil
	case InDebt:
		for i := range o.Counters {
			c := &o.Counters[i]
			c.Limit.ChargeInDebt(&found[i].State, now, c.Cost, o.Share, &verdicts[i])
			if verdicts[i].Taken != found[i].charged {
				return 0, errDisagree
			}
		}
		return 0, nil
	case InTurn:
		c := &o.Counters[0]
		verdicts[0], _ = c.Limit.Reserve(&found[0].State, now, c.Cost, o.Patience)
		if (verdicts[0].Taken > 0) != (found[0].charged > 0) {
			return 0, errDisagree
		}
		return 0, nil
	case UpTo:
		all = o.Counters[0].Cost
		SetCost(o.Counters, 1)
		granted, err := o.readRun(0, len(o.Counters), now, all, found)
		if err != nil {
			return 0, err
		}
		SetCost(o.Counters, max(1, granted))
		for i := range o.Counters {
			found[i].nth(&o.Counters[i], now, 0, min(1, granted), &verdicts[i])
		}
		return granted, nil
	}
	return o.readCalls(now, ahead, all, verdicts, found)
}

// readCalls is Read for calls that are charged all or none.
func (o *Op) readCalls(now, ahead, all int64, verdicts []Verdict, found []Found) (passed int64, err error) {
	for from, end := 0, 0; from < len(o.Counters); from = end {
		end = RunEnd(o.Counters, from)
		most := all
		if from > 0 && o.Counters[0].Behind == 0 {
			most = passed
		}
		fit, err := o.readRun(from, end, now, most, found)
		if err != nil {
			return 0, err
		}
		own := min(max(0, fit-ahead), o.Calls)
		if from == 0 {
			passed = own
		}
		for i := from; i < end; i++ {
			found[i].nth(&o.Counters[i], now, ahead+max(0, own-1), fit, &verdicts[i])
		}
	}
	return passed, nil
}

// readRun returns how many calls passed, of at most so many with the counters of a run. The script and the
// states that it found must agree.
func (o *Op) readRun(from, end int, now, most int64, found []Found) (fit int64, err error) {
	fit = most
	for i := from; i < end; i++ {
		fit = found[i].fit(&o.Counters[i], now, fit)
	}
	for i := from; i < end; i++ {
		if c := &o.Counters[i]; found[i].charged != fit && (c.Cost > 0 || !c.Limit.Properties().HasPermits()) {
			return 0, errDisagree
		}
	}
	return fit, nil
}
