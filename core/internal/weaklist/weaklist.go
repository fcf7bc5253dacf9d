// Package weaklist lists objects without keeping them in memory. An object that nobody else holds
// leaves the list.
package weaklist

import (
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"weak"
)

// most bounds a list, because handlers may make an object in each call.
const most = 4_000

// List lists objects in the order in which they were added. Its zero value is empty. It is safe for
// concurrent use.
type List[T any] struct {
	mu       sync.Mutex
	listed   []weak.Pointer[T]
	sweepAt  int // the length of the list at which dropped objects are removed next
	rejected int // objects that found no room since the list was swept

	unlisted atomic.Int64 // the objects in use that found no room
}

// Add adds an object. Beyond the first 4,000 in use it is only counted.
func (l *List[T]) Add(of *T) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.listed) >= l.sweepAt || l.rejected >= most/4 {
		l.sweep()
	}
	if len(l.listed) < most {
		l.listed = append(l.listed, weak.Make(of))
		return
	}
	l.rejected++
	l.unlisted.Add(1)
	runtime.AddCleanup(of, func(unlisted *atomic.Int64) { unlisted.Add(-1) }, &l.unlisted)
}

// sweep removes dropped objects from the list. The next sweep is due when the list has doubled, or
// when it is full and many objects found no room in it. So the cost of sweeping is small for each
// object.
func (l *List[T]) sweep() {
	l.listed = slices.DeleteFunc(l.listed, func(of weak.Pointer[T]) bool { return of.Value() == nil })
	l.rejected, l.sweepAt = 0, min(max(64, 2*len(l.listed)), max(most, len(l.listed)+1))
}

// All returns the listed objects that are still in use, and the number of objects in use that are not
// listed.
func (l *List[T]) All() (listed []*T, unlisted int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, pointer := range l.listed {
		if of := pointer.Value(); of != nil {
			listed = append(listed, of)
		}
	}
	return listed, int(l.unlisted.Load())
}
