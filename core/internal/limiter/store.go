package limiter

import (
	"context"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
	"github.com/accesslimit/accesslimit/core/internal/engine"
	"github.com/accesslimit/accesslimit/core/internal/inflight"
)

// Store has the counters: those in Redis, behind a localfirst.Store, or those in this process.
type Store interface {
	engine.Store
	engine.Turns
	inflight.Store
	// Settle changes a bill.
	Settle(ctx context.Context, b *algorithm.Bill, change algorithm.BillChange) (algorithm.BillAnswer, error)
	// GiveBackTurn gives back a turn, as far as it still counts and nobody waits behind it. It returns
	// how many of its permits stay because of those who wait.
	GiveBackTurn(ctx context.Context, turn algorithm.Charge) (stays int64, err error)
	// RefundsLost returns how many permits may still have counted but were not given back.
	RefundsLost() uint64
	// Records returns the calls that count in a log now, newest first.
	Records(ctx context.Context, key []byte, limit *algorithm.Limit) ([]algorithm.Record, error)
	// Pause begins a pause of the calls that go out, or makes it longer. key is the pause's.
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
