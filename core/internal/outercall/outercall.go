// Package outercall finds a middleware that charges a counter for a call for which another one,
// further outside, has charged it already: their rule is attached twice.
package outercall

import (
	"bytes"
	"sync/atomic"
	"time"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
)

// Calls remembers an allowed call while its handler runs.
//
// Only one call is remembered at a time, and seldom, so that the others pay next to nothing. That
// is enough, because the service makes the mistake in every call. While the handler runs, nothing
// that identifies its call can belong to another call.
//
// The zero Calls is ready for use. It is safe for concurrent use.
type Calls struct {
	current atomic.Pointer[Call]
	next    atomic.Int64 // when the next call may be remembered, since processStart
}

// Call is a call that may be remembered.
type Call struct {
	calls *Calls
	id    ID
	keys  [][]byte
}

// ID is the same for all middlewares around a handler, and identifies their call. The zero ID
// identifies none.
type ID struct {
	Header uintptr // of the response
	Call   any     // what the framework identifies it by; comparable
	Path   string  // beside Call: a handler may call others for its own caller
}

// interval is the shortest time between two calls that are remembered. Remembering a call writes
// memory that all processors read.
const interval = 100 * time.Millisecond

// processStart is where the times of next begin.
var processStart = time.Now()

// Due reports whether the interval is over, and begins the next one if so.
func (c *Calls) Due() bool {
	now, next := int64(time.Since(processStart)), c.next.Load()
	return now >= next && c.next.CompareAndSwap(next, now+int64(interval))
}

// New returns a call with these counters, or nil if nothing identifies it.
func (c *Calls) New(id ID, counters []algorithm.Counter) *Call {
	if id == (ID{}) {
		return nil
	}
	o := &Call{calls: c, id: id}
	for i := range counters {
		if counters[i].Limit.Kind != algorithm.Ban {
			o.keys = append(o.keys, bytes.Clone(counters[i].Key))
		}
	}
	return o
}

// Begin remembers the call while its handler runs.
func (o *Call) Begin() { o.calls.current.Store(o) }

// End forgets the call, unless another call has taken its place.
func (o *Call) End() { o.calls.current.CompareAndSwap(o, nil) }

// Current returns the call that is remembered, or nil.
func (c *Calls) Current() *Call { return c.current.Load() }

// Charged returns the index of the first of these counters that the call has charged, or -1.
func (o *Call) Charged(counters []algorithm.Counter) int {
	for i := range counters {
		for _, key := range o.keys {
			if bytes.Equal(key, counters[i].Key) {
				return i
			}
		}
	}
	return -1
}

// Is reports whether an ID is that of the call.
func (o *Call) Is(id ID) bool { return o.id == id }
