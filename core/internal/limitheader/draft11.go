package limitheader

import (
	"fmt"
	"strings"
	"time"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
	"github.com/accesslimit/accesslimit/core/internal/waits"
)

// draft11 returns the permits left, in the unit of the policy, and the effective window in seconds, if it
// is known.
func (l *Limit) draft11(refused bool) (r, t int64, known bool) {
	t = l.effectiveWindow(refused)
	return l.inUnits(l.Verdict.Remaining), t, t > 0
}

// effectiveWindow returns the seconds within which a caller can use no more than the permits left:
// the whole seconds before the next permit comes back. If none is left, it is the wait, rounded up.
// It returns 0 if it is not known, or too short. In a refusal it is not known for limits that do not
// refuse. Their verdicts may be remembered, or a charge may have been given back since, and
// Retry-After must not end before the window.
func (l *Limit) effectiveWindow(refused bool) int64 {
	switch v := l.Verdict; {
	case refused && !l.Counter.Refuses(v):
		return 0
	case v.RetryAfter > 0 && v.Remaining == 0 && v.RetryAfter < algorithm.Forever:
		return waits.Seconds(time.Duration(v.RetryAfter) * time.Microsecond)
	case v.RetryAfter > 0 || l.Leased:
		return 0
	case v.Remaining == 0:
		return waits.Seconds(l.nextPermit())
	default:
		return int64(l.nextPermit() / time.Second)
	}
}

func (l *Limit) nextPermit() time.Duration {
	return time.Duration(l.Counter.Limit.NextPermit(l.Verdict)) * time.Microsecond
}

// largestInteger is the largest integer of a structured field (RFC 9651).
const largestInteger = 999_999_999_999_999

// inBytes reports whether the permits of the limit are bytes of bodies. A slot is one whatever the
// size of its call.
func (l Limit) inBytes() bool { return l.Unit > 0 && !l.slots }

// inUnits returns a number of permits in the unit of the policy: bytes, requests, or concurrent
// requests.
func (l *Limit) inUnits(permits int64) int64 {
	switch {
	case !l.inBytes():
		return permits
	case permits > largestInteger/l.Unit:
		return largestInteger
	default:
		return permits * l.Unit
	}
}

// bytesPolicy returns the value of RateLimit-Policy if some of the limits are in bytes.
func (w *Writer) bytesPolicy() string {
	entries := make([]string, len(w.limits))
	for i := range w.limits {
		l := &w.limits[i]
		if entries[i] = l.Draft10; l.inBytes() {
			entries[i] = fmt.Sprintf(`%s;q=%d;qu="content-bytes";w=%d`, l.label, l.inUnits(l.size), l.seconds)
		}
	}
	return strings.Join(entries, ", ")
}
