package route

import (
	"maps"
	"slices"

	"github.com/accesslimit/accesslimit/core/internal/cowmap"
)

// maxKept is the number of routes that a Table keeps. It is bounded because the callers of some
// proxies choose the names of routes.
const maxKept = 2000

// Table holds an unnamed rule in the form T under the name of each route that was called. Its zero
// value is empty. It is safe for concurrent use.
type Table[T any] struct{ known cowmap.Map[Key, T] }

// Of returns the rule for a route. If the route is new, meet makes the rule under its name, and the
// table keeps it. If the table is full, Of is Peek. The last entry is for calls without a route.
func (t *Table[T]) Of(key Key, meet, form func(name string) T) T {
	known := t.known.All()
	if of, ok := known[key]; ok {
		return of
	}
	if key != (Key{}) && len(known) >= maxKept-1 {
		return t.Peek(key, form)
	}
	key = key.Clone()
	of, _ := t.known.Add(key, meet(key.Name()), maxKept)
	return of
}

// Peek returns the rule for a route, but keeps nothing. If the route is new, form makes the rule
// under its name.
func (t *Table[T]) Peek(key Key, form func(name string) T) T {
	if of, ok := t.known.Get(key); ok {
		return of
	}
	return form(key.Clone().Name())
}

// All returns the rule for each route that was called.
func (t *Table[T]) All() []T { return slices.Collect(maps.Values(t.known.All())) }
