package outgoing

import (
	"sync"
	"sync/atomic"
	"time"
)

// unrecorded has the ends of the pauses that began while the store did not answer. They hold in this
// process until they are recorded: a store that is back does not know them.
type unrecorded struct {
	count atomic.Int64 // of ends, so that calls need no lock while there are none
	mu    sync.Mutex
	ends  map[string]time.Time
}

// maxUnrecorded bounds how many pauses are kept.
const maxUnrecorded = 10_000

// add keeps a pause, unless the key has a longer one. It reports whether the key had none.
func (u *unrecorded) add(key string, lasts time.Duration) (first bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	before, known := u.ends[key]
	if !known && len(u.ends) >= maxUnrecorded {
		return false
	}
	if u.ends == nil {
		u.ends = make(map[string]time.Time)
	}
	if ends := time.Now().Add(lasts); ends.After(before) {
		u.ends[key] = ends
	}
	u.count.Store(int64(len(u.ends)))
	return !known
}

// end returns when the pause of a key ends, or the zero time.
func (u *unrecorded) end(key string) time.Time {
	if u.count.Load() == 0 {
		return time.Time{}
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.ends[key]
}

// remove removes the pause of a key, and reports whether it did. One that ends later stays.
func (u *unrecorded) remove(key string, end time.Time) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.ends[key].After(end) {
		return false
	}
	delete(u.ends, key)
	u.count.Store(int64(len(u.ends)))
	return true
}
