package limiter

import (
	"context"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
)

// Store has the counters: those in Redis, behind a localfirst.Store, or those in this process.
type Store interface {
	// Do carries out an op.
	Do(ctx context.Context, op *algorithm.Op)
	// Change changes counters after calls. What is given back comes back even if the context has ended.
	Change(ctx context.Context, c *algorithm.Change) error
	// RefundsLost returns how many permits may still have counted but were not given back.
	RefundsLost() uint64
	// Records returns the calls that count in a log now, newest first.
	Records(ctx context.Context, key []byte, limit *algorithm.Limit) ([]algorithm.Record, error)
	// Reset forgets keys of one subject, and reports whether any was there.
	Reset(ctx context.Context, keys ...[]byte) (changed bool, err error)
	// InBackground runs a task that nobody waits for, except Close.
	InBackground(do func())
	// Close ends what runs in the background.
	Close()
}
