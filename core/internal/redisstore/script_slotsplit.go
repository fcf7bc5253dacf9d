package redisstore

import (
	"context"
	"time"
)

// isSlotSplit reports whether a server refused a script without running it, because a slot is being
// moved and the script's keys are on both servers or are new. Until the move is over, no server of
// the cluster can run it.
func isSlotSplit(err error) bool { return isReply(err, "TRYAGAIN") }

// backoff paces attempts to run a command until a cluster can run it. Its zero value is ready.
type backoff struct {
	pause time.Duration
	until time.Time // see retrySplit
}

// A slot is moved in milliseconds, or in seconds if it holds many keys.
const firstPause, longestPause = time.Millisecond, 16 * time.Millisecond

// retrySplit reports, after a pause, whether to run a script again because its keys were split. The
// last quarter of the call's time is for the answer to the last attempt, so that the call fails
// because of the slot, and was not charged, rather than with a timeout, after which it may have
// been.
func (b *backoff) retrySplit(ctx context.Context, err error) bool {
	if !isSlotSplit(err) {
		return false
	}
	if deadline, ok := ctx.Deadline(); ok && b.until.IsZero() {
		b.until = time.Now().Add(time.Until(deadline) * 3 / 4)
	}
	return b.sleep(ctx) && time.Now().Before(b.until)
}

// sleep pauses, and reports whether there is still time.
func (b *backoff) sleep(ctx context.Context) bool {
	b.pause = min(max(firstPause, 2*b.pause), longestPause)
	timer := time.NewTimer(b.pause)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
