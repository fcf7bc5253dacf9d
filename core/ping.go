package core

import (
	"context"
	"errors"
	"fmt"

	"github.com/accesslimit/accesslimit/core/internal/failure"
)

// pingName is the name under which the log reports that Ping failed.
const pingName = "Ping"

// Ping returns nil if calls are counted now: each Redis server has charged a call, on a counter
// that only Ping uses and that lasts a second. Without Redis, they always are. Call Ping when a
// service starts, to find a mistake in its configuration, and in readiness checks.
//
// Ping returns within Options.Timeout. The error is that of ctx if it has ended, and otherwise a
// *[StoreError] of one of the servers, whose text says what to change. Danger: while Redis is
// down, each rule's OnStoreError decides, so a failed Ping alone is no reason to end the process.
func (l *Limiter) Ping(ctx context.Context) error {
	f := l.mustFront()
	if f.Redis == nil {
		return ctx.Err()
	}
	err := f.failures.errorOf(pingName, f.Redis.Ping(ctx, f.KeyHead))
	var failed *StoreError
	if errors.As(err, &failed) {
		class := failure.Class(failed.Class)
		failed.Err = fmt.Errorf("%s: %w", class, failed.Err)
		if change := failure.Change(class, failed.Err.Error()); change != "" {
			failed.Err = fmt.Errorf("%w; %s", failed.Err, change)
		}
	}
	return err
}
