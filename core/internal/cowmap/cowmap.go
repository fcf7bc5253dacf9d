// Package cowmap provides a map that is read without a lock, because adding to it copies it.
package cowmap

import (
	"maps"
	"sync"
	"sync/atomic"
)

// Map is a copy-on-write map for keys that are added seldom and read in every call. Its zero value
// is empty. It is safe for concurrent use.
type Map[K comparable, V any] struct {
	entries atomic.Pointer[map[K]V]
	mu      sync.Mutex // held to add and to remove
}

// All returns the entries. They must not be changed.
func (m *Map[K, V]) All() map[K]V {
	if entries := m.entries.Load(); entries != nil {
		return *entries
	}
	return nil
}

// Get returns the value of a key, and whether there is one.
func (m *Map[K, V]) Get(key K) (V, bool) {
	v, ok := m.All()[key]
	return v, ok
}

// Add stores a value unless the key has one or the map has limit entries. The map is bounded
// because callers may choose the keys. It returns the value that the map holds for the key and
// true, or the given value and false if the map is full.
func (m *Map[K, V]) Add(key K, value V, limit int) (_ V, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	entries := m.All()
	if earlier, ok := entries[key]; ok { // another goroutine was faster
		return earlier, true
	}
	if len(entries) >= limit {
		return value, false
	}
	next := make(map[K]V, len(entries)+1)
	maps.Copy(next, entries)
	next[key] = value
	m.entries.Store(&next)
	return value, true
}

// Remove removes a key, if it is there.
func (m *Map[K, V]) Remove(key K) {
	m.mu.Lock()
	defer m.mu.Unlock()
	entries := m.All()
	if _, ok := entries[key]; !ok {
		return
	}
	next := maps.Clone(entries)
	delete(next, key)
	m.entries.Store(&next)
}

// Clear removes all keys.
func (m *Map[K, V]) Clear() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.entries.Store(nil)
}
