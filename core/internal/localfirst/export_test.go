package localfirst

import "time"

// Leases is how many counters are leased.
func (s *Store) Leases() (n int) {
	s.leases.table.each(func(in *set[lease]) {
		for range in.all {
			n++
		}
	})
	return n
}

// SetWallClock has the store read the wall clock from a function.
func (s *Store) SetWallClock(read func() time.Time) {
	start := time.Now()
	s.clock.Read = func() (int64, int64) { return read().UnixNano(), int64(time.Since(start)) }
}
