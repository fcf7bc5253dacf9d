package algorithm

// Op is what is asked of counters together. A store answers by its Verdicts.
type Op struct {
	Mode     Mode
	Counters []Counter
	Verdicts []Verdict // room for one for each counter
	// MayRecall reports whether a remembered refusal may answer an op that Looks. Those that charge may
	// always be answered so.
	MayRecall bool
	// Calls is how many equal calls it stands for, if it charges.
	Calls int64
	// Passed is how many of these passed, if one script decided. The verdicts are those of the last one, or of
	// the first one if none did. After UpTo, the counters have the cost that was charged, or 1.
	Passed int64
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

// NewOp returns an op on counters, with room for the verdicts.
func NewOp(m Mode, counters ...Counter) *Op {
	return &Op{Mode: m, Counters: counters, Verdicts: make([]Verdict, len(counters)), Calls: 1}
}

// Charges reports whether the op may charge something.
func (o *Op) Charges() bool { return o.Mode != Looks }

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
