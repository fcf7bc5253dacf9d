package redisstore

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Listener hears what an operator should know of the servers.
type Listener interface {
	// BreakerOpened is told when a server is not asked any more, because it did not answer.
	BreakerOpened(addr string)
	// BreakerClosed is told when it answers again.
	BreakerClosed(addr string, after time.Duration)
	// Unreachable receives the reason why no connection to a server can be set up.
	Unreachable(addr string, why error)
	// TooOld receives a server whose version does not support the scripts.
	TooOld(addr, version string)
	// Lost is told when a server was restarted, or replaced by a replica: what it counted since it last saved, or sent to the replica, is
	// gone.
	Lost(addr, how string)
	// Evicts is told of a server that forgets counters when its memory is full.
	Evicts(addr, policy string)
}

// nobody listens to nothing.
type noListener struct{}

func (noListener) BreakerOpened(string)                {}
func (noListener) BreakerClosed(string, time.Duration) {}
func (noListener) Unreachable(string, error)           {}
func (noListener) TooOld(string, string)               {}
func (noListener) Lost(string, string)                 {}
func (noListener) Evicts(string, string)               {}

// watch looks who a shard's server is, where INFO may be read: after the first answer, whenever it turns out not to know a script
// that it knew, as after a restart, and when it answers again after it had not.
type serverWatch struct {
	addr     string
	readInfo func(context.Context) (string, error)
	common   *common
	started  atomic.Bool
	requests atomic.Int32 // 0: nobody looks; else how often it was to look since it began to

	version atomic.Pointer[string] // of the server, once it is known

	mu       sync.Mutex // held while it looks
	runID    string
	lastRead time.Time
}

// lookEvery is how often a server is looked at, at most.
const refreshEvery = 100 * time.Millisecond

// hears is told of an answer of the server's, and whether it did not know a script.
func (w *serverWatch) answered(unknown bool) {
	if w == nil || !unknown && w.started.Load() {
		return
	}
	w.started.Store(true)
	w.refresh()
}

// look looks in the background; once more, when it is called meanwhile: what is to be seen may be newer.
func (w *serverWatch) refresh() {
	if w.readInfo != nil && w.requests.Add(1) == 1 {
		w.refreshInBackground()
	}
}

func (w *serverWatch) refreshInBackground() {
	w.common.inBackground(func() {
		wanted := w.requests.Load()
		w.refreshNow()
		if !w.requests.CompareAndSwap(wanted, 0) {
			w.refreshInBackground()
		}
	})
}

// lookNow looks, as soon as it may.
func (w *serverWatch) refreshNow() {
	w.mu.Lock()
	defer w.mu.Unlock()
	time.Sleep(time.Until(w.lastRead.Add(refreshEvery)))
	w.lastRead = time.Now()
	ctx, cancel := context.WithTimeout(context.Background(), w.common.timeout)
	defer cancel()
	info, err := w.readInfo(ctx)
	if err != nil { // the next answer is as good as this one
		w.started.Store(isAnswer(err)) // but for who may not ask, or does not know how to answer
		return
	}
	w.update(info)
}

// learn reads what INFO says.
func (w *serverWatch) update(info string) {
	is := parseInfo(info)
	if policy := is["maxmemory_policy"]; policy != "" && policy != "noeviction" && is["maxmemory"] != "0" {
		w.common.listener.Evicts(w.addr, policy)
	}
	if version := is["redis_version"]; version != "" {
		w.version.Store(&version)
		if isOlder(version) {
			w.common.listener.TooOld(w.addr, version)
		}
	}
	was := w.runID
	w.runID = is["run_id"]
	switch {
	case was != "" && w.runID != "" && was != w.runID:
		w.common.countLoss(w.addr, "another server process answers than before")
	case was == "" && w.common.wasOurMaster(is["master_replid2"]):
		w.common.countLoss(w.addr, "a replica has taken its master's place")
	}
	w.common.rememberMaster(is["master_replid"])
}

// fields are the lines of INFO.
func parseInfo(info string) map[string]string {
	is := make(map[string]string)
	for line := range strings.Lines(info) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			is[name] = value
		}
	}
	return is
}

// common is what the shards of a store share.
type common struct {
	timeout  time.Duration
	trips    tripCounts
	losses   atomic.Uint64
	listener Listener

	mu         sync.Mutex
	closed     bool
	background sync.WaitGroup      // charges that are being given back; none is added once closed
	masterIDs  map[string]struct{} // the replication IDs of the masters so far
}

// inBackground runs what Close waits for, unless it has been called.
func (c *common) inBackground(do func()) (begun bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.closed {
		c.background.Go(do)
	}
	return !c.closed
}

func (c *common) close() {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.background.Wait()
}

func (c *common) countLoss(addr, how string) {
	c.losses.Add(1)
	c.listener.Lost(addr, how)
}

// remember keeps a master's replication ID, by which a replica that takes its place is known. There are few.
func (c *common) rememberMaster(id string) {
	if id == "" { // it does not say
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.masterIDs == nil || len(c.masterIDs) >= maxShards {
		c.masterIDs = make(map[string]struct{})
	}
	c.masterIDs[id] = struct{}{}
}

// replaces says whether a server that once replicated under this ID was a replica of a master of ours.
func (c *common) wasOurMaster(id string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, known := c.masterIDs[id]
	return known
}
