// Package optional turns a feature off while the Redis user lacks a right for it. Everything else
// works without that feature.
package optional

import (
	"sync/atomic"
	"time"

	"github.com/accesslimit/accesslimit/core/internal/redisstore"
)

// Feature is the state of a feature, on or off. Its zero value is on. It is safe for concurrent use.
type Feature struct {
	offUntil atomic.Int64 // UnixNano
}

// offFor is how long a feature is off before it tries again. An operator may grant the right in the
// meantime.
const offFor = time.Minute

// IsOff reports whether the feature is off.
func (f *Feature) IsOff() bool { return time.Now().UnixNano() < f.offUntil.Load() }

// TurnOn turns the feature on, because the right is there again.
func (f *Feature) TurnOn() { f.offUntil.Store(0) }

// TurnOff turns the feature off if the error says that a right is missing, and reports whether it
// does.
func (f *Feature) TurnOff(err error) bool {
	missing := redisstore.IsNoPermission(err)
	if missing {
		f.offUntil.Store(time.Now().Add(offFor).UnixNano())
	}
	return missing
}
