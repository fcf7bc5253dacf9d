package toplist

import (
	"sync/atomic"
	"time"
)

const (
	// maxASecond is how many observations of a rule are noted in a second; beyond that, only every
	// second one is. Noting one takes at most 0.6 µs (BenchmarkNote), so this is less than half a
	// percent of a processor. When a rule refuses as fast as it can, an observation takes 1 to 2 ns
	// (BenchmarkFlood). With 2048, a subject with 1 % of 6,000 refusals in a second was 12 % off.
	maxASecond = 8192
	// maxMask bounds the sampling to one observation in 16 million.
	maxMask = 1<<24 - 1
)

// sampler notes one observation in mask+1. The mask doubles while more than maxASecond are noted in a
// second, and halves in each second with less than half as many.
type sampler struct {
	mask atomic.Uint64 // a power of two minus one

	// The Rule's mutex protects these.
	began time.Duration // when this second began, since the table was made
	noted int           // in this second
}

// weight returns how many observations this one stands for, or 0 if it is not noted. Callers pass a
// different number for each observation.
func (s *sampler) weight(number uint64) uint64 {
	mask := s.mask.Load()
	if mask == 0 {
		return 1
	}
	if mix(number)&mask != 0 {
		return 0
	}
	return mask + 1
}

// mix spreads a number over 64 bits, as the end of MurmurHash3 does, so that numbers in a row give
// random bits.
func mix(n uint64) uint64 {
	n = (n ^ n>>33) * 0xff51afd7ed558ccd
	n = (n ^ n>>33) * 0xc4ceb9fe1a85ec53
	return n ^ n>>33
}

// count counts an observation that is noted now.
func (s *sampler) count(now time.Duration) {
	s.slow(now)
	if s.noted++; s.noted > maxASecond {
		s.mask.Store(min(s.mask.Load()<<1|1, maxMask))
		s.began, s.noted = now, 0
	}
}

// slow lowers the mask if a second is over, and reports whether everything is noted now.
func (s *sampler) slow(now time.Duration) (all bool) {
	mask := s.mask.Load()
	seconds := uint(max(0, now-s.began) / time.Second)
	if seconds == 0 {
		return mask == 0
	}
	if 2*s.noted > maxASecond {
		seconds--
	}
	mask >>= min(seconds, 63)
	s.mask.Store(mask)
	s.began, s.noted = now, 0
	return mask == 0
}
