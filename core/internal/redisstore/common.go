package redisstore

import (
	"context"
	"hash/maphash"
	"sync"
	"sync/atomic"
	"time"

	"github.com/accesslimit/accesslimit/core/internal/histogram"
)

// common is what the shards of a store share.
type common struct {
	timeout  time.Duration
	seed     maphash.Seed
	keyHead  string // see Store.JoinKeys; "": calls on different keys never share a script
	markHead string // see Store.WatchMemory; "": no memory is watched
	trips    tripCounts
	times    histogram.Histogram
	losses   atomic.Uint64
	lost     atomic.Uint64 // permits: see Store.RefundsLost
	listener Listener
	closing  context.Context // ends when the store is being closed
	stop     context.CancelFunc

	mu         sync.Mutex
	closed     bool
	background sync.WaitGroup       // no function is added once closed
	marks      map[string]markState // by their keys, or in a ring by the servers
}

func newCommon(timeout time.Duration) *common {
	c := &common{timeout: timeout, seed: maphash.MakeSeed(), listener: noListener{}}
	c.closing, c.stop = context.WithCancel(context.Background())
	return c
}

func (c *common) hashKey(key []byte) uint64 { return maphash.Bytes(c.seed, key) }

// inBackground starts a function that close waits for, and reports whether it did: not once closed.
func (c *common) inBackground(do func()) (started bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.closed {
		c.background.Go(do)
	}
	return !c.closed
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

func (c *common) countLoss(addr, lost, how string) {
	c.losses.Add(1)
	c.listener.Lost(addr, lost, how)
}
