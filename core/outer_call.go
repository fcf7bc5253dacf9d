package core

import (
	"reflect"

	"github.com/accesslimit/accesslimit/core/adapter"
	"github.com/accesslimit/accesslimit/core/internal/algorithm"
	"github.com/accesslimit/accesslimit/core/internal/outercall"
)

// chargedOutside returns the index of the first counter that an outer middleware has charged for
// the same call, or -1.
func chargedOutside(outer *outercall.Call, v adapter.View, counters []algorithm.Counter) int {
	if at := outer.Charged(counters); at >= 0 && outer.Is(identityOf(v)) {
		return at
	}
	return -1
}

// identityOf returns what tells a call from all others under way, or the zero ID if nothing does.
func identityOf(v adapter.View) outercall.ID {
	if v, ok := v.(adapter.NestedView); ok {
		id := v.CallID()
		if id == nil || !reflect.ValueOf(id).Comparable() {
			return outercall.ID{}
		}
		return outercall.ID{Call: id, Path: v.Path()}
	}
	switch header := reflect.ValueOf(v.ResponseHeader()); header.Kind() {
	case reflect.Map, reflect.Pointer:
		return outercall.ID{Header: header.Pointer()}
	default:
		return outercall.ID{}
	}
}
