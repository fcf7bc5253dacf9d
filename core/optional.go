package core

import (
	"sync/atomic"
	"time"

	"github.com/accesslimit/accesslimit/core/internal/redisstore"
)

// optional is the state of a feature without which everything else works. It is off while the Redis
// user lacks a right for it.
type optional struct {
	offUntil atomic.Int64 // UnixNano
}

// offFor is how long a feature is off before it tries again. An operator may grant the right in the
// meantime.
const offFor = time.Minute

func (o *optional) isOff() bool { return time.Now().UnixNano() < o.offUntil.Load() }

// turnOff turns the feature off if the error is that a right is missing, and reports whether it is.
func (o *optional) turnOff(err error) bool {
	missing := redisstore.IsNoPermission(err)
	if missing {
		o.offUntil.Store(time.Now().Add(offFor).UnixNano())
	}
	return missing
}
