package redisstore

import (
	"context"
	"time"
)

// torn says whether a script was refused unseen because its counters lie on both sides of a slot that is being moved, or are new to it:
// until the move is over, no server of the cluster can run it.
func torn(err error) bool { return replied(err, "TRYAGAIN") }

// patience is that of a caller whose counters are torn apart.
type patience struct{ pause time.Duration }

// The pauses between two tries. A slot is moved in milliseconds, or, when it holds a lot, in seconds.
const firstPause, longestPause = time.Millisecond, 16 * time.Millisecond

// again says, after a pause, whether to ask once more.
func (p *patience) again(ctx context.Context, err error) bool {
	return torn(err) && p.wait(ctx)
}

// wait pauses, and reports whether there is still time.
func (p *patience) wait(ctx context.Context) bool {
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
