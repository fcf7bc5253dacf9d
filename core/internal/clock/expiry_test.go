package clock_test

import (
	"testing"

	"github.com/accesslimit/accesslimit/core/internal/clock"
)

// An answer holds no longer than the server means, whose clock counts whole microseconds. A caller
// who waits until the answer expires is not early.
func TestWholeMicroseconds(t *testing.T) {
	for _, sent := range []int64{5_000_000, 5_000_001, 5_000_999} {
		const holds = 10
		// The server reads its clock when the request is sent, or later.
		ends := (sent/1000 + holds) * 1000
		expires := clock.Expires(sent, holds)
		if expires > ends || ends-expires >= 1000 {
			t.Errorf("sent at %d ns: until %d, want less than a microsecond before %d", sent, expires, ends)
		}
		if waits := clock.MicrosUntil(ends, sent) * 1000; sent+waits < ends || sent+waits-ends >= 1000 {
			t.Errorf("from %d to %d ns: wait %d ns", sent, ends, waits)
		}
	}
	if got := clock.MicrosUntil(1, 2_000_000); got != 0 {
		t.Errorf("%d µs until a time that is past", got)
	}
}
