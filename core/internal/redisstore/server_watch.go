package redisstore

import (
	"cmp"
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/accesslimit/accesslimit/core/internal/panics"
)

// serverWatch notices by a mark that a shard's server has lost data, and reads INFO to find out how
// that happened and what else is wrong with the server. It looks at the mark after the first
// answer, and then every markEvery while there are answers. It looks at both whenever the server no
// longer knows a script, as after a restart, and when the server answers again after an outage. A
// nil watch does nothing.
type serverWatch struct {
	addr     string
	readInfo func(context.Context) (string, error)
	mark     *memoryMark
	common   *common
	fresh    atomic.Bool            // the next answer starts no refresh
	infoRead atomic.Bool            // INFO was read since the server may have become another one
	requests atomic.Int32           // requests for a refresh since the current one began; 0 if none runs
	version  atomic.Pointer[string] // of the server, once it is known

	mu       sync.Mutex // held during a refresh
	runID    string
	evicts   bool // whether it evicts even keys without an expiry
	lastRead time.Time
	tick     *time.Timer
}

// refreshEvery is the shortest time between two refreshes.
const refreshEvery = 100 * time.Millisecond

// answered notes an answer of the server, and whether it did not know a script.
func (w *serverWatch) answered(unknownScript bool) {
	switch {
	case w == nil:
	case unknownScript:
		w.mayBeAnother()
	case !w.fresh.Load():
		w.refresh()
	}
}

// mayBeAnother starts a refresh that reads INFO again, because another server may have taken the
// place of this one.
func (w *serverWatch) mayBeAnother() {
	w.infoRead.Store(false)
	w.refresh()
}

// refresh looks at the server in the background. If a refresh is running, another one follows,
// because the first may have missed something.
func (w *serverWatch) refresh() {
	w.fresh.Store(true)
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

// refreshNow looks at the server, as soon as refreshEvery allows. If it does not answer, the next
// answer starts another refresh.
func (w *serverWatch) refreshNow() {
	w.mu.Lock()
	defer w.mu.Unlock()
	time.Sleep(time.Until(w.lastRead.Add(refreshEvery)))
	w.lastRead = time.Now()
	ctx, cancel := context.WithTimeout(context.Background(), w.common.timeout)
	defer cancel()
	lost, id, err := w.mark.renew(ctx)
	before, mayEvict := w.runID, w.evicts
	if !w.infoRead.Load() || lost != "" {
		err = cmp.Or(w.readServer(ctx), err)
	}
	mayEvict = mayEvict || w.evicts                     // an operator can change that while the server runs
	if lost != "" && !(mayEvict && w.runID == before) { // the server may have evicted the mark
		w.common.countLoss(Loss{id, w.addr, lost, w.howLost(before)})
	}
	if !isAnswer(err) {
		w.fresh.Store(false)
		return
	}
	if w.tick == nil {
		w.tick = time.AfterFunc(markEvery, panics.Guard(func() { w.fresh.Store(false) }, w.common.reportPanic))
	}
	w.tick.Reset(markEvery)
}

// howLost returns how the server lost its data, if it had this run_id before.
func (w *serverWatch) howLost(before string) string {
	switch {
	case w.runID == "":
		return "not known, because INFO cannot be read: a server that may evict keys may have evicted only the one that shows a loss"
	case before == w.runID:
		return "its keys were removed, as by FLUSHALL: the same server process answers"
	default:
		return "it was restarted, or a replica has taken its place: another server process answers"
	}
}

// readServer reads INFO. If the server does not answer, INFO is read again later. An answer that we
// may not read it, or that there is none, is final.
func (w *serverWatch) readServer(ctx context.Context) error {
	w.infoRead.Store(true)
	info, err := w.readInfo(ctx)
	if err != nil {
		w.infoRead.Store(isAnswer(err))
		return err
	}
	is := parseInfo(info)
	policy := is["maxmemory_policy"]
	if policy != "" && policy != "noeviction" && is["maxmemory"] != "0" {
		w.common.listener.Evicts(w.addr, policy)
	}
	w.evicts = strings.HasPrefix(policy, "allkeys") && is["maxmemory"] != "0"
	if version := is["redis_version"]; version != "" {
		w.version.Store(&version)
		if isOlder(version) {
			w.common.listener.TooOld(w.addr, version)
		}
	}
	w.runID = is["run_id"]
	return nil
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
