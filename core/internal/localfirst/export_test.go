package localfirst

import "time"

// SetWallClock makes the store read the wall clock from a function.
func (s *Store) SetWallClock(read func() time.Time) {
	start := time.Now()
	s.clock.Read = func() (int64, int64) { return read().UnixNano(), int64(time.Since(start)) }
}
