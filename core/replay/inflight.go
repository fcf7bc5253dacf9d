package replay

import (
	"container/heap"
	"iter"
	"sync/atomic"

	"github.com/accesslimit/accesslimit/core"
)

// inFlight are the calls that hold something until they end: a slot, or a charge that may be given
// back. The handler of each is a coroutine that waits for the time at which the call ended.
type inFlight struct{ calls endings }

// running is a call in flight. Its next function ends it.
type running struct {
	ends int64
	next func() (struct{}, bool)
	stop func()
}

// begin runs the handler of a call, which returns the status at the time at which the call ends.
func (f *inFlight) begin(answer core.Answer, ends int64, status int) {
	next, stop := iter.Pull(func(yield func(struct{}) bool) {
		answer.Run(func() int { yield(struct{}{}); return status })
	})
	next()
	heap.Push(&f.calls, running{ends, next, stop})
}

// endUntil ends the calls that ended by a time, each at its own time.
func (f *inFlight) endUntil(time int64, now *atomic.Int64) {
	for len(f.calls) > 0 && f.calls[0].ends <= time {
		call := heap.Pop(&f.calls).(running)
		now.Store(call.ends)
		call.next()
		call.stop()
	}
	now.Store(time)
}

// abandon ends all calls.
func (f *inFlight) abandon() {
	for _, call := range f.calls {
		call.stop()
	}
	f.calls = nil
}

// endings is a heap of calls, the one that ends first at the top.
type endings []running

func (e endings) Len() int           { return len(e) }
func (e endings) Less(i, j int) bool { return e[i].ends < e[j].ends }
func (e endings) Swap(i, j int)      { e[i], e[j] = e[j], e[i] }
func (e *endings) Push(x any)        { *e = append(*e, x.(running)) }

func (e *endings) Pop() any {
	last := (*e)[len(*e)-1]
	*e = (*e)[:len(*e)-1]
	return last
}
