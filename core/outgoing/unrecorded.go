package outgoing

import (
	"sync"
	"sync/atomic"
	"time"
)

// unrecorded has the pauses that began while the store did not answer. They hold in this process until
// they are recorded: a store that is back does not know them.
type unrecorded struct {
	count  atomic.Int64 // of pauses, so that calls need no lock while there are none
	mu     sync.Mutex
	pauses map[string]unrecordedPause
}

type unrecordedPause struct {
	ends    time.Time
	refused bool // a call was refused, so one call is to go first afterwards
}

// maxUnrecorded bounds how many pauses are kept.
const maxUnrecorded = 10_000

// add keeps a pause. Of several the latest end counts, and whether one of them followed a refusal. It
// reports whether the key had none.
func (u *unrecorded) add(key string, lasts time.Duration, refused bool) (first bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	pause, known := u.pauses[key]
	if !known && len(u.pauses) >= maxUnrecorded {
		return false
	}
	if u.pauses == nil {
		u.pauses = make(map[string]unrecordedPause)
	}
	if ends := time.Now().Add(lasts); ends.After(pause.ends) {
		pause.ends = ends
	}
	pause.refused = pause.refused || refused
	u.pauses[key] = pause
	u.count.Store(int64(len(u.pauses)))
	return !known
}

// of returns the pause of a key, or the zero pause.
func (u *unrecorded) of(key string) unrecordedPause {
	if u.count.Load() == 0 {
		return unrecordedPause{}
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.pauses[key]
}

// remove removes the pause of a key, and reports whether it did. One that has changed stays.
func (u *unrecorded) remove(key string, pause unrecordedPause) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.pauses[key] != pause {
		return false
	}
	delete(u.pauses, key)
	u.count.Store(int64(len(u.pauses)))
	return true
}
