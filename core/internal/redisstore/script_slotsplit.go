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
type backoff struct{ pause time.Duration }

// A slot is moved in milliseconds, or in seconds if it holds many keys.
const firstPause, longestPause = time.Millisecond, 16 * time.Millisecond

// retrySplit reports, after a pause, whether to run a script again because its keys were split.
func (b *backoff) retrySplit(ctx context.Context, err error) bool {
	return isSlotSplit(err) && b.sleep(ctx)
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
