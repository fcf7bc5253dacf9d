package redisstore

import (
	"context"
	"time"
)

// torn says whether a script was refused unseen because its counters lie on both sides of a slot that is being moved, or are new to it:
// until the move is over, no server of the cluster can run it.
func isSlotSplit(err error) bool { return isReply(err, "TRYAGAIN") }

// patience is that of a caller whose counters are torn apart.
type slotSplitRetry struct{ pause time.Duration }

// The pauses between two tries. A slot is moved in milliseconds, or, when it holds a lot, in seconds.
const firstPause, longestPause = time.Millisecond, 16 * time.Millisecond

// again says, after a pause, whether to ask once more.
func (p *slotSplitRetry) retry(ctx context.Context, err error) bool {
	return isSlotSplit(err) && p.sleep(ctx)
}

// wait pauses, and reports whether there is still time.
func (p *slotSplitRetry) sleep(ctx context.Context) bool {
	p.pause = min(max(firstPause, 2*p.pause), longestPause)
	timer := time.NewTimer(p.pause)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
