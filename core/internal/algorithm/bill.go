package algorithm

// maxAdditions is how many additions to a bill can be given back; see settle.lua.
const maxAdditions = 32

// SettledLife is for how long a settled bill is kept, in microseconds, so that settling it again is
// recognized. It is short, because settled bills take the place of counters.
const SettledLife = 5 * 60 * 1_000_000

// MaxBilled is the largest sum of a bill, so that both engines add exactly. A bill that was charged
// more counts as one of this sum.
const MaxBilled = maxUnits

// RecordLife is how long a store keeps the record of a change that is made once, in microseconds.
const RecordLife = 60 * 1_000_000

// RecordTag is the short name of such records and the version of their form, as in keys.
const RecordTag = "on2"

// BillTag is the short name of bills and the version of their form, as in keys.
const BillTag = "bl1"

// OpenBill says where a call that passes is recorded as a bill.
type OpenBill struct {
	Key  []byte
	Span int64 // for how long it is kept, in microseconds
}

// Bill is what a call was charged when it opened a bill. It does not change.
type Bill struct {
	Key     []byte   // of its record
	Charges []Charge // on each counter, all of one Cost and one At, and InDebt
	Share   float64  // bounds the debt: see Limit.Debt
}

// Estimate returns how much each counter was charged.
func (b *Bill) Estimate() int64 { return b.Charges[0].Cost }

// Counters returns the counters of the bill.
func (b *Bill) Counters() []Counter {
	counters := make([]Counter, len(b.Charges))
	for i := range b.Charges {
		counters[i].Key, counters[i].Limit = b.Charges[i].Key, b.Charges[i].Limit
	}
	return counters
}

// BillChange is what is asked of an open bill: to add permits, or to settle it at the permits that
// were used in all.
type BillChange struct {
	Settle  bool
	Permits int64
}

// BillAnswer is a store's answer to a BillChange.
type BillAnswer struct {
	Status BillStatus
	Used   int64 // BillSettled: the permits at which it was settled
	Above  int64 // how many permits exceed, or exceeded when it was settled, the bound of the debt of some counter
	Lost   int64 // how many permits may have counted still, but were not given back
}

// BillStatus says what became of a BillChange.
type BillStatus int64

// The statuses, by their numbers in replies.
const (
	BillUnknown BillStatus = 0 // there is no such bill
	BillChanged BillStatus = 1
	BillSettled BillStatus = 2 // it was settled before, and nothing was done
)

// billRecord is the state of a bill: see settle.lua.
type billRecord struct {
	ends      int64 // when it is forgotten, in microseconds
	settled   bool
	used      int64   // if it is settled
	above     int64   // BillAnswer.Above, if it is settled
	charged   []int64 // to each counter
	additions []addition
}

// addition is what an addition to a bill was charged on each counter.
type addition struct {
	at                int64
	permits, position []int64
}

// New returns the state of a bill that is opened now and charges its cost to a number of counters.
func (b *OpenBill) New(now int64, counters int, cost int64) State {
	record := &billRecord{ends: now + b.Span, charged: make([]int64, counters)}
	for i := range record.charged {
		record.charged[i] = cost
	}
	return State{More: &More{other: &other{bill: record}}}
}

// BillCounters are the counters of a bill in a store.
type BillCounters interface {
	// Charge charges the counter at i whether the cost fits or not; see Limit.ChargeInDebt.
	Charge(i int, cost int64) Verdict
	// GiveBack gives back a charge on the counter at i, and returns how many permits were lost.
	GiveBack(i int, c *Charge) (lost int64)
}

// Change changes a bill whose state is s. It is settle.lua in Go.
func (b *Bill) Change(s *State, c BillChange, now int64, counters BillCounters) (a BillAnswer) {
	r := s.More.other.bill
	switch {
	case r.ends <= now || !r.settled && len(r.charged) != len(b.Charges): // forgotten, or another bill's token
		return BillAnswer{}
	case r.settled:
		return BillAnswer{Status: BillSettled, Used: r.used, Above: r.above}
	case c.Settle:
		for i := range b.Charges {
			b.settleAt(i, r, c.Permits, counters, &a)
		}
		*r = billRecord{ends: min(r.ends, now+SettledLife), settled: true, used: c.Permits, above: a.Above}
	default:
		r.add(c.Permits, now, counters, &a)
	}
	a.Status = BillChanged
	return a
}

// settleAt makes the counter at i hold what was used.
func (b *Bill) settleAt(i int, r *billRecord, used int64, counters BillCounters, a *BillAnswer) {
	if more := used - r.charged[i]; more > 0 {
		v := counters.Charge(i, more)
		a.Above = max(a.Above, more-v.Taken)
		return
	}
	charge := b.Charges[i]
	back := r.charged[i] - used
	charge.Cost = min(back, b.Estimate())
	if charge.Cost > 0 {
		a.Lost += counters.GiveBack(i, &charge)
	}
	r.giveBack(i, back-charge.Cost, r.additions, charge, counters, a)
}

// giveBack gives back permits of the newest additions to the counter at i, in the order in which they were
// charged: so a bucket loses nothing that was charged in between.
func (r *billRecord) giveBack(i int, permits int64, of []addition, charge Charge, counters BillCounters, a *BillAnswer) {
	if permits == 0 || len(of) == 0 {
		return
	}
	newest := &of[len(of)-1]
	charge.At, charge.Position, charge.Cost = newest.at, newest.position[i], min(permits, newest.permits[i])
	r.giveBack(i, permits-charge.Cost, of[:len(of)-1], charge, counters, a)
	if charge.Cost > 0 {
		a.Lost += counters.GiveBack(i, &charge)
	}
}

// add charges permits to all counters.
func (r *billRecord) add(permits, now int64, counters BillCounters, a *BillAnswer) {
	n := addition{at: now}
	for i := range r.charged {
		v := counters.Charge(i, permits)
		r.charged[i] = min(MaxBilled, r.charged[i]+v.Taken)
		a.Above = max(a.Above, permits-v.Taken)
		n.permits, n.position = append(n.permits, v.Taken), append(n.position, v.Position)
	}
	if r.additions = append(r.additions, n); len(r.additions) > maxAdditions {
		r.additions = r.additions[1:]
	}
}
