package redisstore

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// serverWatch notices when a shard's server is another one than before, if INFO may be read. It
// reads INFO after the first answer, whenever the server does not know a script that it knew, as
// after a restart, and when the server answers again after it did not. A nil watch does nothing.
type serverWatch struct {
	addr     string
	readInfo func(context.Context) (string, error)
	common   *common
	started  atomic.Bool
	requests atomic.Int32           // for a refresh since the one that runs began; 0 if none runs
	version  atomic.Pointer[string] // of the server, once it is known

	mu       sync.Mutex // held during a refresh
	runID    string
	lastRead time.Time
}

// refreshEvery is the shortest time between two refreshes.
const refreshEvery = 100 * time.Millisecond

// answered notes an answer of the server, and whether it did not know a script.
func (w *serverWatch) answered(unknownScript bool) {
	if w == nil || !unknownScript && w.started.Load() {
		return
	}
	w.started.Store(true)
	w.refresh()
}

// refresh reads INFO in the background. If a refresh is running, another follows, because there may
// be news that it missed.
func (w *serverWatch) refresh() {
	if w.readInfo != nil && w.requests.Add(1) == 1 {
		w.refreshInBackground()
	}
}

func (w *serverWatch) refreshInBackground() {
	w.common.inBackground(func() {
		requests := w.requests.Load()
		w.refreshNow()
		if !w.requests.CompareAndSwap(requests, 0) {
			w.refreshInBackground()
		}
	})
}

// refreshNow reads INFO, as soon as refreshEvery allows.
func (w *serverWatch) refreshNow() {
	w.mu.Lock()
	defer w.mu.Unlock()
	time.Sleep(time.Until(w.lastRead.Add(refreshEvery)))
	w.lastRead = time.Now()
	ctx, cancel := context.WithTimeout(context.Background(), w.common.timeout)
	defer cancel()
	info, err := w.readInfo(ctx)
	if err != nil {
		// The next answer starts another refresh, unless the server answered that we may not read
		// INFO, or that it has none.
		w.started.Store(isAnswer(err))
		return
	}
	w.update(info)
}

// update compares the text of INFO with what was known.
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

// parseInfo returns the fields of INFO.
func parseInfo(info string) map[string]string {
	fields := make(map[string]string)
	for line := range strings.Lines(info) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			fields[name] = value
		}
	}
	return fields
}
