package algorithm

import (
	"errors"
	"strconv"
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
		return 0, o.readInDebt(now, verdicts, found)
	case InTurn:
		return 0, o.readInTurn(now, &verdicts[0], &found[0])
	case UpTo:
		return o.readUpTo(now, verdicts, found)
	}
	return o.readCalls(now, ahead, all, verdicts, found)
}

// readInDebt is Read for costs that are charged in debt.
func (o *Op) readInDebt(now int64, verdicts []Verdict, found []Found) error {
	for i := range o.Counters {
		c := &o.Counters[i]
		c.Limit.ChargeInDebt(&found[i].State, now, c.Cost, o.Share, &verdicts[i])
		if verdicts[i].Taken != found[i].charged {
			return errDisagree
		}
	}
	return nil
}

// readInTurn is Read for a cost that is charged at its turn.
func (o *Op) readInTurn(now int64, v *Verdict, found *Found) error {
	c := &o.Counters[0]
	*v, _ = c.Limit.Reserve(&found.State, now, c.Cost, o.Patience)
	if (v.Taken > 0) != (found.charged > 0) {
		return errDisagree
	}
	return nil
}

// readUpTo is Read for a cost of which as much is charged as fits.
func (o *Op) readUpTo(now int64, verdicts []Verdict, found []Found) (granted int64, err error) {
	most := o.Counters[0].Cost
	SetCost(o.Counters, 1)
	if granted, err = o.readRun(0, len(o.Counters), now, most, found); err != nil {
		return 0, err
	}
	SetCost(o.Counters, max(1, granted))
	for i := range o.Counters {
		found[i].nth(&o.Counters[i], now, 0, min(1, granted), &verdicts[i])
	}
	return granted, nil
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
