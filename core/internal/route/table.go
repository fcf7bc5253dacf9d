package route

import (
	"maps"
	"slices"
	"sync/atomic"

	"github.com/accesslimit/accesslimit/core/internal/cowmap"
)

// maxCounted is the number of routes that an unnamed rule counts separately. It is bounded because
// the callers of a gRPC proxy choose the method's name. Routes beyond it share the counter of calls
// without a route.
const maxCounted = 2000

// Table holds an unnamed rule in the form T under the name of each route that was called. Its zero
// value is empty. It is safe for concurrent use.
type Table[T any] struct {
	known cowmap.Map[Key, T]
	full  atomic.Bool // the last entry is kept for the calls without a route
}

// Of returns the rule for a route. If the route is new, meet makes the rule under its name.
func (t *Table[T]) Of(key Key, meet func(name string) T) T {
	if of, ok := t.known.Get(key); ok {
		return of
	}
	if key == (Key{}) {
		of, _ := t.known.Add(key, meet(None), maxCounted)
		return of
	}
	if t.full.Load() {
		return t.Of(Key{}, meet)
	}
	key = key.Clone()
	of, kept := t.known.Add(key, meet(key.Name()), maxCounted-1)
	if !kept {
		t.full.Store(true)
		return t.Of(Key{}, meet)
	}
	return of
}

// Peek returns the rule for a route as Of would, but keeps nothing. If the route is new, form makes
// the rule under its name.
func (t *Table[T]) Peek(key Key, form func(name string) T) T {
	if of, ok := t.known.Get(key); ok {
		return of
	}
	if key != (Key{}) && t.full.Load() {
		return t.Peek(Key{}, form)
	}
	return form(key.Clone().Name())
}

// All returns the rule for each route that was called.
func (t *Table[T]) All() []T { return slices.Collect(maps.Values(t.known.All())) }
