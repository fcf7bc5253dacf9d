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
type nobody struct{}

func (nobody) BreakerOpened(string)                {}
func (nobody) BreakerClosed(string, time.Duration) {}
func (nobody) Unreachable(string, error)           {}
func (nobody) TooOld(string, string)               {}
func (nobody) Lost(string, string)                 {}
func (nobody) Evicts(string, string)               {}

// watch looks who a shard's server is, where INFO may be read: after the first answer, whenever it turns out not to know a script
// that it knew, as after a restart, and when it answers again after it had not.
type watch struct {
	addr   string
	read   func(context.Context) (string, error)
	all    *common
	begun  atomic.Bool
	wanted atomic.Int32 // 0: nobody looks; else how often it was to look since it began to

	version atomic.Pointer[string] // of the server, once it is known

	mu    sync.Mutex // held while it looks
	runID string
	last  time.Time
}

// lookEvery is how often a server is looked at, at most.
const lookEvery = 100 * time.Millisecond

// hears is told of an answer of the server's, and whether it did not know a script.
func (w *watch) hears(unknown bool) {
	if w == nil || !unknown && w.begun.Load() {
		return
	}
	w.begun.Store(true)
	w.look()
}

// look looks in the background; once more, when it is called meanwhile: what is to be seen may be newer.
func (w *watch) look() {
	if w.read != nil && w.wanted.Add(1) == 1 {
		w.lookOn()
	}
}

func (w *watch) lookOn() {
	w.all.inBackground(func() {
		wanted := w.wanted.Load()
		w.lookNow()
		if !w.wanted.CompareAndSwap(wanted, 0) {
			w.lookOn()
		}
	})
}

// lookNow looks, as soon as it may.
func (w *watch) lookNow() {
	w.mu.Lock()
	defer w.mu.Unlock()
	time.Sleep(time.Until(w.last.Add(lookEvery)))
	w.last = time.Now()
	ctx, cancel := context.WithTimeout(context.Background(), w.all.timeout)
	defer cancel()
	info, err := w.read(ctx)
	if err != nil { // the next answer is as good as this one
		w.begun.Store(answers(err)) // but for who may not ask, or does not know how to answer
		return
	}
	w.learn(info)
}

// learn reads what INFO says.
func (w *watch) learn(info string) {
	is := fields(info)
	if policy := is["maxmemory_policy"]; policy != "" && policy != "noeviction" && is["maxmemory"] != "0" {
		w.all.listener.Evicts(w.addr, policy)
	}
	if version := is["redis_version"]; version != "" {
		w.version.Store(&version)
		if isOlder(version) {
			w.all.listener.TooOld(w.addr, version)
		}
	}
	was := w.runID
	w.runID = is["run_id"]
	switch {
	case was != "" && w.runID != "" && was != w.runID:
		w.all.lose(w.addr, "another server process answers than before")
	case was == "" && w.all.replaces(is["master_replid2"]):
		w.all.lose(w.addr, "a replica has taken its master's place")
	}
	w.all.remember(is["master_replid"])
}

// fields are the lines of INFO.
func fields(info string) map[string]string {
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
	trips    trips
	losses   atomic.Uint64
	listener Listener

	mu         sync.Mutex
	closed     bool
	background sync.WaitGroup      // charges that are being given back; none is added once closed
	replicated map[string]struct{} // the replication IDs of the masters so far
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

func (c *common) lose(addr, how string) {
	c.losses.Add(1)
	c.listener.Lost(addr, how)
}

// remember keeps a master's replication ID, by which a replica that takes its place is known. There are few.
func (c *common) remember(id string) {
	if id == "" { // it does not say
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.replicated == nil || len(c.replicated) >= maxShards {
		c.replicated = make(map[string]struct{})
	}
	c.replicated[id] = struct{}{}
}

// replaces says whether a server that once replicated under this ID was a replica of a master of ours.
func (c *common) replaces(id string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, known := c.replicated[id]
	return known
}
