package core

import (
	"bytes"
	"reflect"
	"time"
)

// outerCall is an allowed call whose handler runs. The limiter remembers its counters, to find a
// middleware further inside that charges one of them again for the same call: its rule is attached
// twice.
//
// Only one call is remembered at a time, and seldom, so that the others pay next to nothing. That
// is enough, because the service makes the mistake in every call. While the handler runs, nothing
// that identifies its call can belong to another call.
type outerCall struct {
	limiter *Limiter
	id      callID
	keys    [][]byte
}

// callID is the same for all middlewares around a handler, and identifies their call.
type callID struct {
	header uintptr // of the response
	call   any     // of a NestedView
	path   string  // of a NestedView: a handler may call others for its own caller
}

// outerInterval is the shortest time between two calls that are remembered. Remembering a call
// writes memory that all processors read.
const outerInterval = 100 * time.Millisecond

// processStart is where the times of nextOuter begin.
var processStart = time.Now()

// trackOuter makes the limiter remember the call while its handler runs, if outerInterval is over.
// u is the call's completion, or nil if it needs none. trackOuter returns u, or a completion that
// it made to forget the call afterwards.
func (c *call) trackOuter(u *completion) *completion {
	if c.applied[0].rule.inHandler {
		return u
	}
	now, next := int64(time.Since(processStart)), c.limiter.nextOuter.Load()
	if now < next || !c.limiter.nextOuter.CompareAndSwap(next, now+int64(outerInterval)) {
		return u
	}
	o := &outerCall{limiter: c.limiter, id: c.identity()}
	if o.id == (callID{}) {
		return u
	}
	for i := range c.counters {
		if !c.limits[i].isBan {
			o.keys = append(o.keys, bytes.Clone(c.counters[i].Key))
		}
	}
	if u == nil {
		u = &completion{limiter: c.limiter, ctx: c.Context(), isRPC: c.Method() == ""}
	}
	u.outer = o
	return u
}

// begin remembers the call. It does nothing if o is nil.
func (o *outerCall) begin() {
	if o != nil {
		o.limiter.outer.Store(o)
	}
}

// end forgets the call, unless another call has taken its place. It does nothing if o is nil.
func (o *outerCall) end() {
	if o != nil {
		o.limiter.outer.CompareAndSwap(o, nil)
	}
}

// warnIfInside warns if this call is the same as an outer one, and has one of its counters.
func (c *call) warnIfInside(o *outerCall) {
	for i := range c.counters {
		if !o.has(c.counters[i].Key) {
			continue
		}
		if c.identity() == o.id {
			c.limiter.operatorLog.AttachedTwice(c.limits[i].named.name, c.Route())
		}
		return
	}
}

func (o *outerCall) has(key []byte) bool {
	for _, k := range o.keys {
		if bytes.Equal(k, key) {
			return true
		}
	}
	return false
}

// identity returns what tells the call from all others under way, or the zero callID if nothing
// does.
func (c *call) identity() callID {
	if v, ok := c.View.(NestedView); ok {
		id := v.CallID()
		if id == nil || !reflect.ValueOf(id).Comparable() {
			return callID{}
		}
		return callID{call: id, path: c.Path()}
	}
	switch header := reflect.ValueOf(c.ResponseHeader()); header.Kind() {
	case reflect.Map, reflect.Pointer:
		return callID{header: header.Pointer()}
	default:
		return callID{}
	}
}
