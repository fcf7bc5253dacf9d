package algorithm_test

import (
	"encoding/binary"
	"slices"

	"github.com/redis/go-redis/v9"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
)

// sound reports whether the bytes could be a state. Of a list or a set, it checks what every script
// reads first.
func (p *planted) sound() bool {
	const moment = 1 << 53
	switch at, size := p.at, len(p.state); p.limit.Kind {
	case algorithm.SlidingWindow:
		return size >= 26 && size%6 == 2 && at(0, 7) < moment && at(19, 7) < moment && at(13, 6) <= at(7, 6)
	case algorithm.FixedWindow:
		return size == 13 && at(0, 7) < moment
	case algorithm.CalendarWindow:
		return size == 20 && at(0, 7) < moment && at(13, 7) < moment
	case algorithm.TokenBucket:
		return p.bucket() > 0
	case algorithm.Pausing:
		by := p.state[min(size, 22):]
		return size >= 22 && at(7, 7) < moment && at(0, 7) <= at(15, 7) && at(15, 7) < moment && len(by) <= 511 && (len(by) == 0 || int(by[0]) < len(by))
	case algorithm.SlidingLog:
		entries := p.entries()
		last := entries[len(entries)-1].(string)
		if len(last) < 16 {
			return false
		}
		when := binary.LittleEndian.Uint64([]byte(last)) << 8 >> 8
		return when > 0 && when < moment || when == 0 && len(last) >= 28 && len(entries) > 1
	default:
		newest := slices.MaxFunc(p.scores(), func(a, b redis.Z) int { return cmpFloat(a.Score, b.Score) }).Score
		return newest >= 1<<50 && newest < moment
	}
}

// whole reports whether the bytes are a state without contradictions. It does not look at lists and
// sets.
func (p *planted) whole() bool {
	switch p.limit.Kind {
	case algorithm.SlidingLog, algorithm.Concurrency:
		return false
	case algorithm.SlidingWindow:
		if !p.sound() {
			return false
		}
		charged, used, held := p.at(0, 7), p.at(7, 6), p.at(13, 6)
		ageBefore := uint64(33)
		for from := 26; from < len(p.state); from += 6 {
			age := (charged - p.at(from, 1)) % 64
			if age == 0 || age >= ageBefore {
				return false
			}
			ageBefore, held = age, held+p.at(from+1, 5)
		}
		return held == used
	}
	return p.sound() && (p.limit.Kind != algorithm.TokenBucket || p.bucket() > 1)
}

// bucket returns 2 if the bytes could be a bucket's state, 1 if only their gaps, which few scripts
// read, could not be, and otherwise 0.
func (p *planted) bucket() (sound int) {
	const most = 1 << 52
	at, size := p.at, len(p.state)
	if size < 44 || at(0, 7) >= 1<<53 || at(30, 7) > most || at(37, 7) >= 1<<53 {
		return 0
	}
	sound = 2
	slowest, from := 0., 7
	for parts := 1; ; parts++ {
		rest := from + 23 // where own stands
		if parts == 1 {
			rest = 44
		}
		if size < rest {
			return 0
		}
		used, permit, refill := at(from, 7), at(from+7, 6), at(from+13, 5)
		if used > most || permit == 0 || refill == 0 || float64(refill)/float64(permit) <= slowest || parts > 4 {
			return 0
		}
		if size == 44 {
			return sound
		}
		if size < rest+16 || int(at(rest+14, 2)) > 256 || size < rest+16+14*int(at(rest+14, 2)) {
			return 0
		}
		slowest = float64(refill) / float64(permit)
		var ok bool
		if from, ok = p.gaps(rest); !ok {
			sound = 1
		}
		if from == size {
			return sound
		}
	}
}

// gaps returns where the gaps of a part end whose own stands here, and whether they and what
// precedes them are sound.
func (p *planted) gaps(from int) (end int, sound bool) {
	own, kept, n := p.at(from, 7), p.at(from+7, 7), int(p.at(from+14, 2))
	sound = own <= 1<<52
	before, oldest := uint64(0), uint64(0)
	for i := range n {
		after, upto := p.at(from+16+14*i, 7), p.at(from+23+14*i, 7)
		sound = sound && after >= before && upto > after && upto <= p.at(30, 7)
		if before = upto; i == 0 {
			oldest = upto - after
		}
	}
	return from + 16 + 14*n, sound && kept <= oldest
}

// at returns the little-endian number in these bytes.
func (p *planted) at(from, length int) (n uint64) {
	for i := length - 1; i >= 0; i-- {
		n = n<<8 | uint64(p.state[from+i])
	}
	return n
}

func cmpFloat(a, b float64) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}
