package redisstore

import (
	"context"
	"hash/maphash"
	"sync"
	"sync/atomic"
	"time"

	"github.com/accesslimit/accesslimit/core/internal/histogram"
	"github.com/accesslimit/accesslimit/core/internal/panics"
)

// common is what the shards of a store share.
type common struct {
	timeout     time.Duration
	seed        maphash.Seed
	keyHead     string // see Store.JoinKeys; "": calls on different keys never share a script
	markHead    string // see Store.WatchMemory; "": no memory is watched
	trips       tripCounts
	times       histogram.Histogram
	losses      atomic.Uint64
	clockAhead  atomic.Int64  // see Store.SawTime
	refundsLost atomic.Uint64 // see Store.RefundsLost
	listener    Listener
	closing     context.Context // ends when the store is being closed
	stop        context.CancelFunc

	mu         sync.Mutex
	closed     bool
	background sync.WaitGroup       // no function is added once closed
	marks      map[string]markState // by their keys or, in a ring, by their servers
}

func newCommon(timeout time.Duration) *common {
	c := &common{timeout: timeout, seed: maphash.MakeSeed(), listener: noListener{}}
	c.closing, c.stop = context.WithCancel(context.Background())
	return c
}

// SawTime notes the time of Redis now, in microseconds since the epoch.
func (c *common) SawTime(now int64) { c.clockAhead.Store(now - nowMicros()) }

// Time returns the time of Redis, as far as known.
func (c *common) Time() int64 { return nowMicros() + c.clockAhead.Load() }

func (c *common) hashKey(key []byte) uint64 { return maphash.Bytes(c.seed, key) }

// inBackground starts a function that close waits for, and reports whether it did. After close, it
// does not.
func (c *common) inBackground(do func()) (started bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.closed {
		c.background.Go(panics.Guard(do, c.reportPanic))
	}
	return !c.closed
}

// call runs a function of go-redis, or one that the client's owner has given to it. A panic in it is
// reported, and becomes the error: go-redis panics at a reply that announces more elements than fit
// into memory.
func (c *common) call(do func() error) error {
	err := panics.Catch(do)
	if panics.Is(err) {
		c.reportPanic(err)
	}
	return err
}

// reportPanic reports a panic in the background, so that no call waits for the owner's log.
func (c *common) reportPanic(err error) {
	c.inBackground(func() { c.listener.Panicked(err) })
}

// close waits for what runs in the background. Probes end at once, because nobody needs their
// findings any more.
func (c *common) close() {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.stop()
	c.background.Wait()
}

func (c *common) countLoss(l Loss) {
	c.losses.Add(1)
	c.listener.Lost(l)
}
