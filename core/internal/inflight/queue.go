package inflight

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/accesslimit/accesslimit/core/internal/panics"
)

// mostWaiting is how many questions wait for the store at most.
const mostWaiting = 1000

// Queue runs in the background what nobody waits for: the questions of rules in DryRun, and what
// follows them. It is safe for concurrent use.
type Queue struct {
	atOnce   bool
	panicked func(error)
	waiting  atomic.Int64

	mu      sync.Mutex
	running int
	idle    chan struct{} // closed when nothing runs; nil while nobody waits for that
}

// NewQueue returns an empty Queue. atOnce lets it run everything at once, in the goroutine that asks
// for it: counters in this process answer sooner than a goroutine starts. panicked receives panics.
func NewQueue(atOnce bool, panicked func(error)) *Queue {
	return &Queue{atOnce: atOnce, panicked: panicked}
}

// AtOnce reports whether everything runs at once.
func (q *Queue) AtOnce() bool { return q.atOnce }

// Enter reports whether there is room for one more question. If so, Leave is to be called when it
// has been answered.
func (q *Queue) Enter() bool {
	if q.waiting.Add(1) <= mostWaiting {
		return true
	}
	q.waiting.Add(-1)
	return false
}

// Leave ends what Enter began.
func (q *Queue) Leave() { q.waiting.Add(-1) }

// Start runs a function in the background.
func (q *Queue) Start(do func()) {
	if q.atOnce {
		panics.Guard(do, q.panicked)()
		return
	}
	q.mu.Lock()
	q.running++
	q.mu.Unlock()
	go panics.Guard(func() {
		defer q.ended()
		do()
	}, q.panicked)()
}

func (q *Queue) ended() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.running--; q.running == 0 && q.idle != nil {
		close(q.idle)
		q.idle = nil
	}
}

// Await returns when nothing runs, or when the context ends.
func (q *Queue) Await(ctx context.Context) {
	q.mu.Lock()
	if q.running == 0 {
		q.mu.Unlock()
		return
	}
	if q.idle == nil {
		q.idle = make(chan struct{})
	}
	idle := q.idle
	q.mu.Unlock()
	select {
	case <-idle:
	case <-ctx.Done():
	}
}

// Running returns how many functions run.
func (q *Queue) Running() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.running
}

// Close waits until nothing runs, for as long as patience.
func (q *Queue) Close(patience time.Duration) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	q.Await(ctx)
}
