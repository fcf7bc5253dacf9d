package core

import (
	"maps"
	"sync"
	"sync/atomic"
)

// readMostly is a map that is copied when something is added, so that reading it takes no lock. What is made of values that
// callers may choose is bounded: what comes beyond is not kept.
type readMostly[K comparable, V any] struct {
	known atomic.Pointer[map[K]V]
	mu    sync.Mutex
}

// all is what it keeps now: not to be changed.
func (m *readMostly[K, V]) all() map[K]V {
	if known := m.known.Load(); known != nil {
		return *known
	}
	return nil
}

func (m *readMostly[K, V]) get(key K) (V, bool) {
	v, ok := m.all()[key]
	return v, ok
}

// add keeps a value while there are less than so many, and returns the one that is kept for the key, or this one and that it
// is not.
func (m *readMostly[K, V]) add(key K, value V, most int) (_ V, kept bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	known := m.all()
	if earlier, ok := known[key]; ok { // somebody else was faster
		return earlier, true
	}
	if len(known) >= most {
		return value, false
	}
	next := make(map[K]V, len(known)+1)
	maps.Copy(next, known)
	next[key] = value
	m.known.Store(&next)
	return value, true
}
