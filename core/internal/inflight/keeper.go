// Package inflight keeps what calls hold while their handlers run, and gives it back afterwards:
// the slots of Concurrency, which it renews meanwhile, the charges of calls that turn out not to
// count, and estimates that turn out too high. For rules in DryRun, it does so behind the answers.
package inflight

import (
	"context"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync/atomic"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
	"github.com/accesslimit/accesslimit/core/internal/failure"
	"github.com/accesslimit/accesslimit/core/internal/refund"
	"github.com/accesslimit/accesslimit/core/internal/slotretry"
)

// Store holds the counters.
type Store interface {
	// Do carries out an op.
	Do(ctx context.Context, op *algorithm.Op)
	// Change changes counters after calls. What is given back comes back even if the context has ended.
	Change(ctx context.Context, c *algorithm.Change) error
}

// Log receives what an operator should know.
type Log interface {
	GiveBackFailed(err error)
	RenewalFailed(err error)
	// Panicked reports a panic that was caught.
	Panicked(err error)
}

// Keeper keeps what the calls of a limiter hold. It is safe for concurrent use.
type Keeper struct {
	store    Store
	refunds  *refund.Ledger
	failures *failure.Counts
	log      Log
	retries  *slotretry.Queue

	closed       atomic.Bool
	holderPrefix string
	holders      atomic.Uint64
}

// New returns a Keeper. The ledger remembers the refunds of decisions. Failures of the store are
// counted and logged.
func New(store Store, refunds *refund.Ledger, failures *failure.Counts, log Log) *Keeper {
	giveBack := func(ctx context.Context, charges []algorithm.Charge) error {
		return store.Change(ctx, &algorithm.Change{Charges: charges})
	}
	return &Keeper{
		store: store, refunds: refunds, failures: failures, log: log,
		retries:      slotretry.New(giveBack, log.Panicked),
		holderPrefix: strconv.FormatUint(rand.Uint64(), 36) + "-",
	}
}

// NewHolder returns a name that no other holder of slots has, in any process: a random number of
// this keeper and a number of the holder.
func (k *Keeper) NewHolder() string {
	return k.holderPrefix + strconv.FormatUint(k.holders.Add(1), 36)
}

// DropUnconfirmedSlots gives back the slots that the store may or may not have taken, because its
// answer did not come in time. Otherwise callers with short deadlines could occupy all slots for a
// window each.
func (k *Keeper) DropUnconfirmedSlots(counters []algorithm.Counter, verdicts []algorithm.Verdict) {
	for i := range counters {
		counter, times := &counters[i], giveBacksAfter(&verdicts[i])
		if times > 0 && counter.Limit.Properties().Slots {
			k.retries.AddUnconfirmed(algorithm.Charge{Key: slices.Clone(counter.Key), Limit: counter.Limit, Mark: counter.Mark}, times)
		}
	}
}

// giveBacksAfter returns how often a slot is to be given back that may have been taken with this verdict.
// Of a caller who left, the store may not have heard yet.
func giveBacksAfter(v *algorithm.Verdict) (times int) {
	if v.Ended != nil {
		return 2
	}
	return giveBacksAfterError(v.Err)
}

// giveBacksAfterError is giveBacksAfter for the error of a request: twice if the store may take the slot
// later still, once if it has answered, and never if it has not taken it.
func giveBacksAfterError(err error) (times int) {
	switch {
	case !failure.MayHaveActed(err):
		return 0
	case failure.ClassOf(err) == failure.Refused:
		return 1
	}
	return 2
}

// giveBack gives back charges when a call has ended, and logs an error. It tries slots again,
// because nothing else frees them before their Window is over.
func (k *Keeper) giveBack(ctx context.Context, charges []algorithm.Charge) {
	if len(charges) == 0 {
		return
	}
	err := k.store.Change(ctx, &algorithm.Change{Charges: charges})
	if err == nil {
		return
	}
	k.failures.Add(err)
	slots := slices.DeleteFunc(slices.Clone(charges), func(c algorithm.Charge) bool { return !c.Limit.Properties().Slots })
	k.retries.Add(slots)
	k.log.GiveBackFailed(err) // last, because a logger may panic
}

// Close stops renewing slots. The next attempt to give back slots in the background is the last.
// Calls still give back what they hold when they end.
func (k *Keeper) Close() {
	k.closed.Store(true)
	k.retries.Close()
}

// Closed reports whether Close was called.
func (k *Keeper) Closed() bool { return k.closed.Load() }
