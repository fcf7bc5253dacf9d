// Package notices reports, only once in a fleet, that the use of a limit has reached a threshold.
//
// A process that sees this adds the limit to a notice beside the counter. Only one process
// succeeds, and that process reports. The call itself does not wait for any of this.
package notices

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/accesslimit/accesslimit/core/internal/optional"
	"github.com/accesslimit/accesslimit/core/internal/panics"
)

const (
	// maxWaiting is how many notices can wait. Further ones are dropped.
	maxWaiting = 4_096
	// maxBytes bounds the texts of waiting notices, because callers may choose long ones.
	maxBytes = 8 << 20
	// maxBatch is how many notices are posted in one trip.
	maxBatch = 64
)

// Notice says that a threshold was reached. Times are in microseconds since the epoch, by the
// store's clock.
type Notice struct {
	Key    string
	Limit  string // the limit in force, without spaces; each limit is reported separately
	At     int64  // when it was reached
	Ends   int64  // when it may be reported again
	Size   int    // the bytes of texts that the notice keeps
	Report func(context.Context)
}

// Board is where notices are posted.
type Board interface {
	// Post posts notices, and returns for each whether it is the first of its key and limit, or an
	// error. It ignores notices whose end has passed, and limits beyond sixteen for one key.
	Post(ctx context.Context, batch []Notice) []Posted
}

// Posted is the result of posting a notice.
type Posted struct {
	First bool
	Err   error
}

// Log receives what an operator should know.
type Log interface {
	NoticesDropped()
	NoticeFailed(err error)
	NoticesOff(err error)
	// Panicked reports a panic that was caught.
	Panicked(err error)
}

// Queue posts notices and reports them, one after the other, in a goroutine of its own. It is safe
// for concurrent use.
type Queue struct {
	board   Board
	log     Log
	ctx     context.Context // the context of the reports
	cancel  context.CancelFunc
	feature optional.Feature

	mu      sync.Mutex
	waiting []Notice
	size    int // bytes of the notices that wait or are being reported
	taken   int // bytes of the notices that are being reported
	recent  recent
	working chan struct{} // closed when the goroutine ends; nil if there is none
	closed  bool
}

// NewQueue returns a queue without a goroutine. It has one while notices wait.
func NewQueue(board Board, log Log) *Queue {
	q := &Queue{board: board, log: log}
	q.ctx, q.cancel = context.WithCancel(context.Background())
	return q
}

// Knows reports whether a notice of the key and limit would be useless, because this process has
// posted or found one less than a second ago.
func (q *Queue) Knows(key []byte, limit string, at int64) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.closed || q.recent.has(key, limit, at)
}

// Add adds a notice, unless the queue knows it. It does not wait.
func (q *Queue) Add(n Notice) {
	if !q.feature.IsOff() && !q.add(&n) {
		q.log.NoticesDropped()
	}
}

// add is Add without the log. It reports whether there was room.
func (q *Queue) add(n *Notice) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case q.closed || q.recent.has([]byte(n.Key), n.Limit, n.At):
		return true
	case len(q.waiting) >= maxWaiting || q.size > 0 && q.size+n.Size > maxBytes:
		return false
	}
	q.size += n.Size
	q.recent.add(n)
	q.waiting = append(q.waiting, *n)
	if q.working == nil {
		q.working = make(chan struct{})
		q.start(q.working)
	}
	return true
}

// Forget makes the queue accept new notices of these keys. Notices that already wait are still
// posted.
func (q *Queue) Forget(keys ...[]byte) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, key := range keys {
		q.recent.forget(key)
	}
}

// Close drops further notices, and returns when the waiting ones are reported or patience is over.
// If a report still runs then, Close ends its context.
func (q *Queue) Close(patience time.Duration) {
	q.mu.Lock()
	q.closed = true
	q.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	q.Await(ctx)
	q.cancel()
}

// Await returns when no notice waits and no report runs, or when the context ends.
func (q *Queue) Await(ctx context.Context) {
	q.mu.Lock()
	working := q.working
	q.mu.Unlock()
	if working == nil {
		return
	}
	select {
	case <-working:
	case <-ctx.Done():
	}
}

// start starts the goroutine that reports notices.
func (q *Queue) start(ended chan<- struct{}) {
	go panics.Guard(func() { q.work(ended) }, q.log.Panicked)()
}

// work reports notices as long as some wait.
func (q *Queue) work(ended chan<- struct{}) {
	done := false
	defer func() {
		if !done { // a report panicked, or called runtime.Goexit, as FailNow of a test does
			q.start(ended)
			return
		}
		close(ended)
	}()
	for batch := q.next(); batch != nil; batch = q.next() {
		if q.feature.IsOff() {
			continue
		}
		for i, posted := range q.board.Post(q.ctx, batch) {
			switch {
			case q.ctx.Err() != nil: // closed, and Close no longer waits
			case posted.First:
				batch[i].Report(q.ctx)
			case posted.Err != nil:
				q.failed(posted.Err)
			}
		}
	}
	done = true
}

// next takes the notices that have waited for longest, or returns nil if none waits.
func (q *Queue) next() (batch []Notice) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.size, q.taken = q.size-q.taken, 0
	n := min(maxBatch, len(q.waiting))
	if n == 0 {
		q.waiting, q.working = nil, nil
		return nil
	}
	batch = slices.Clone(q.waiting[:n])
	clear(q.waiting[:n]) // free what was reported, instead of keeping it until all are
	q.waiting = q.waiting[n:]
	for i := range batch {
		q.taken += batch[i].Size
	}
	return batch
}

// failed logs why a notice could not be posted. Its threshold is then not reported.
func (q *Queue) failed(err error) {
	if q.feature.TurnOff(err) {
		q.log.NoticesOff(err)
		return
	}
	q.log.NoticeFailed(err)
}
