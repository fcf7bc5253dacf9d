package clock

import "time"

// MaxAge is how long a process relies on an earlier answer of a server at most. After
// that, it sees the changes that other processes made meanwhile.
const MaxAge = time.Second

// Expiry is the clock by which such answers expire. Like a [Clock], it must be started first.
type Expiry struct{ Clock }

// Now returns a time in nanoseconds that never steps back. When the wall clock jumps, because the
// machine was suspended or the clock was set, Now jumps ahead by [MaxAge]: nobody knows how much
// time has passed for the server, so all its earlier answers expire.
func (e *Expiry) Now() int64 { return e.Awake() + e.Jumps()*int64(MaxAge) }

// Expires returns the time at which an answer of a server expires. The answer holds for micros
// microseconds, and the request for it was sent at the time sent. The server's clock counts whole
// microseconds, so the real time may have been almost one microsecond later when it was read.
func Expires(sent, micros int64) int64 { return sent + micros*1000 - 999 }

// MicrosUntil returns the microseconds from now until then, or 0 if then is past. It rounds up, so
// that a caller who waits that long is not early.
func MicrosUntil(then, now int64) int64 { return max(0, then-now+999) / 1000 }
