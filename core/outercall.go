package core

import (
	"bytes"
	"reflect"
	"time"
)

// outerCall is a call that was let pass and whose handler runs. The limiter remembers its counters, so that a middleware inside
// which is asked for one of them again, for the same call, is found: the rule is attached twice.
//
// One call is remembered at a time, and few are, so that the others pay next to nothing. It comes again, because the mistake is in
// how the service is put together. While the handler runs, nothing that identifies its call can belong to another.
type outerCall struct {
	limiter *Limiter
	id      callID
	keys    [][]byte
}

// callID is the same for all middlewares around a handler.
type callID struct {
	header uintptr // of the response
	call   any     // of a NestedView
	path   string  // of a NestedView: a handler may call others for its own caller
}

// outerEvery is how long after a call was remembered another one is: all processors read what is written then.
const outerEvery = 100 * time.Millisecond

// started is what the process counts outerEvery from.
var started = time.Now()

// asOuter has the call remembered while its handler runs, if it is time to. u is what else is left to do when that has returned, or
// nil.
func (c *call) asOuter(u *completion) *completion {
	if c.applied[0].rule.inHandler {
		return u
	}
	now, next := int64(time.Since(started)), c.limiter.nextOuter.Load()
	if now < next || !c.limiter.nextOuter.CompareAndSwap(next, now+int64(outerEvery)) {
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

// begin remembers the call; none does nothing.
func (o *outerCall) begin() {
	if o != nil {
		o.limiter.outer.Store(o)
	}
}

// end forgets the call, unless another one has taken its place.
func (o *outerCall) end() {
	if o != nil {
		o.limiter.outer.CompareAndSwap(o, nil)
	}
}

// compareWith warns if this call is an outer one again, and is asked for one of its counters.
func (c *call) compareWith(o *outerCall) {
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

// identity returns what tells the call from all others of the same time; the zero callID if nothing does.
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
