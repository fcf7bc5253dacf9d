// Package wall holds by how much the wall clock of a process is ahead of time.Now. For "make agree",
// core/internal/clock is compiled with it, so that the driver can set the clock.
package wall

import (
	"sync/atomic"
	"time"
)

var ahead atomic.Int64

// Ahead returns by how much the wall clock is ahead. It is negative if the clock was set back.
func Ahead() time.Duration { return time.Duration(ahead.Load()) }

// Set sets by how much the wall clock is ahead.
func Set(d time.Duration) { ahead.Store(int64(d)) }
