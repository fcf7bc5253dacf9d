package clock

import "time"

// MaxAge is the longest time for which a process relies on an earlier answer of a server. After it,
// it sees the changes that other processes made meanwhile.
const MaxAge = time.Second

// Expiry is the clock by which such answers expire. Like a [Clock], it must be started first.
type Expiry struct{ Clock }

// Now returns a time in nanoseconds that never steps back. When the wall clock jumps, because the
// machine was suspended or the clock was set, Now jumps ahead by [MaxAge]. Nobody knows how much
// time has passed for the server then, so all its earlier answers expire.
func (e *Expiry) Now() int64 { return e.Awake() + e.Jumps()*int64(MaxAge) }

// Expires returns the time at which an answer of a server expires. The server said that it holds
// for so many microseconds, in the reply to a request that was sent at the given time. The server's
// clock counts whole microseconds, so it may have been almost one more when it was read.
func Expires(sent, micros int64) int64 { return sent + micros*1000 - 999 }

// MicrosUntil returns the microseconds from now until then, or 0 if that is past. They are rounded
// up, so that a caller who waits for so long is not early.
func MicrosUntil(then, now int64) int64 { return max(0, then-now+999) / 1000 }
