package limiter

import (
	"context"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
)

// Store has the counters: those in Redis, behind a localfirst.Store, or those in this process.
type Store interface {
	// Decide answers for one call's counters, charging all of them or none. It never panics and
	// returns by its deadline.
	Decide(ctx context.Context, counters []algorithm.Counter, charge bool, verdicts []algorithm.Verdict)
	// DecideUpTo charges as much of the counters' cost as fits into all of them. The cost is the
	// same for all. It sets their Cost to the cost that it decided: as much as fits, or 1 if
	// nothing fits.
	DecideUpTo(ctx context.Context, counters []algorithm.Counter, verdicts []algorithm.Verdict)
	// Reserve takes a turn at a bucket, if it comes within patience, in microseconds.
	Reserve(ctx context.Context, c *algorithm.Counter, patience int64) algorithm.Verdict
	// Charge charges the counters, of one subject, whether their costs fit or not, as far as the
	// bound of the debt allows. share gives the bound, as a multiple of a limit.
	Charge(ctx context.Context, counters []algorithm.Counter, share float64, verdicts []algorithm.Verdict)
	// Open decides a call like Decide, on counters of one subject. If the call passes, it records a
	// bill.
	Open(ctx context.Context, counters []algorithm.Counter, b algorithm.OpenBill, verdicts []algorithm.Verdict)
	// Settle changes a bill.
	Settle(ctx context.Context, b *algorithm.Bill, change algorithm.BillChange) (algorithm.BillAnswer, error)
	// GiveBack gives charges back, as far as they still count, even if the context has ended.
	GiveBack(ctx context.Context, charges []algorithm.Charge) error
	// RefundsLost returns how many permits may still have counted but were not given back.
	RefundsLost() uint64
	// Renew keeps the slots of a call in flight for another window each.
	Renew(ctx context.Context, slots []algorithm.Charge) error
	// Records returns the calls that count in a log now, newest first.
	Records(ctx context.Context, key []byte, limit *algorithm.Limit) ([]algorithm.Record, error)
	// Ban bans a subject by hand, for span microseconds. It returns when the ban ends, in
	// microseconds since the epoch, and whether that is later than before. key is the ban's.
	Ban(ctx context.Context, key []byte, span int64) (ends int64, changed bool, err error)
	// Pause begins a pause of the calls that go out, or makes it longer. key is that of the subject's
	// ban.
	Pause(ctx context.Context, key []byte, p *algorithm.Pause) (algorithm.Paused, error)
	// PauseOver forgets the refusals before a pause that is over.
	PauseOver(ctx context.Context, key []byte) error
	// Reset forgets keys of one subject, and reports whether any was there.
	Reset(ctx context.Context, keys ...[]byte) (changed bool, err error)
	// InBackground runs a task that nobody waits for, except Close.
	InBackground(do func())
	// Close ends what runs in the background.
	Close()
}
