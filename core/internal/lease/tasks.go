package lease

import (
	"math"
	"sync"
	"time"
)

// tasks manages what runs in the background: fetches, and the sweep, which has a timer. No fetch of
// a key begins while the key is being reset.
type tasks struct {
	running sync.WaitGroup

	mu      sync.Mutex
	stopped bool           // no task begins any more
	resets  map[string]int // how many Resets of a key are under way
	timer   *time.Timer
	next    int64 // when the timer fires
}

func (t *tasks) init() {
	t.resets = make(map[string]int)
	t.next = math.MaxInt64
}

// begin reports whether a task may begin: a fetch of a key, or the sweep, whose key is nil.
func (t *tasks) begin(key []byte) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.stopped || t.resets[string(key)] > 0 {
		return false
	}
	t.running.Add(1)
	return true
}

func (t *tasks) isStopped() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.stopped
}

// finishTask ends a task that began. If the tasks were stopped meanwhile, it gives back what the
// task left, because nobody else would.
func (l *Leases) finishTask() {
	if l.tasks.isStopped() {
		l.giveBacks.flush()
	}
	l.tasks.running.Done()
}

// beginReset prevents fetches of a key from beginning until endReset.
func (t *tasks) beginReset(key []byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.resets[string(key)]++
}

func (t *tasks) endReset(key []byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.resets[string(key)]--; t.resets[string(key)] == 0 {
		delete(t.resets, string(key))
	}
}

func (t *tasks) stop() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.stopped = true
	if t.timer != nil {
		t.timer.Stop()
	}
}
