package rivals

import (
	"hash/maphash"
	"math/bits"
	"sync/atomic"
	"time"
)

// floor is the least that a token bucket in the process can cost: it hashes the subject, reads the
// clock and swaps one number in an open-addressed table. It compares hashes instead of subjects,
// never grows and forgets nothing, so it is not usable as a limiter.
var floor = InProcess{Floor, func(l Limit, keys int) (func(string) bool, func()) {
	table := make([]floorEntry, 1<<bits.Len(uint(2*keys)))
	mask, seed, epoch := uint64(len(table)-1), maphash.MakeSeed(), time.Now()
	permit, room := int64(l.Permit), int64(l.Permit)*int64(l.Max)
	return func(subject string) bool {
		hash := maphash.String(seed, subject) | 1 // 0 marks a free entry
		at := hash >> 1 & mask
		for table[at].hash.Load() != hash && !table[at].hash.CompareAndSwap(0, hash) {
			at = (at + 1) & mask
		}
		full, now := &table[at].full, int64(time.Since(epoch))
		for {
			was := full.Load()
			will := max(was, now) + permit
			if will-now > room {
				return false
			}
			if full.CompareAndSwap(was, will) {
				return true
			}
		}
	}, func() {}
}}

// floorEntry is the bucket of one subject.
type floorEntry struct {
	hash atomic.Uint64
	full atomic.Int64 // when the bucket will be full again, in nanoseconds since the table was made
}
