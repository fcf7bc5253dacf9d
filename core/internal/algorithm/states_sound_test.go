package algorithm_test

import (
	"encoding/binary"
	"math"

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
		return size == 39 && at(0, 7) < moment && at(7, 7) <= 1<<52 && at(14, 6) > 0 && at(20, 5) > 0 && at(25, 7) <= 1<<52 && at(32, 7) < moment
	case algorithm.Pausing:
		by := p.state[min(size, 22):]
		return size >= 22 && at(7, 7) < moment && at(0, 7) <= at(15, 7) && at(15, 7) < moment && len(by) <= 511 && (len(by) == 0 || int(by[0]) < len(by))
	case algorithm.SlidingLog:
		last, shift := p.newest(), 0.
		for _, z := range p.members() {
			if z.Member == "" {
				shift = -z.Score
			}
		}
		member := last.Member.(string)
		return len(member) >= 7 && binary.BigEndian.Uint64(append([]byte{0}, member[:7]...)) < moment &&
			last.Score >= 1 && last.Score < moment && shift >= 0 && shift+last.Score == math.Trunc(shift+last.Score)
	default:
		newest := p.newest().Score
		return newest >= 1<<50 && newest < moment
	}
}

// newest returns the last member of a sorted set.
func (p *planted) newest() redis.Z {
	scores := make(map[string]float64)
	for _, z := range p.members() {
		scores[z.Member.(string)] = z.Score
	}
	last := redis.Z{Score: math.Inf(-1), Member: ""}
	for member, score := range scores {
		if score > last.Score || score == last.Score && member > last.Member.(string) {
			last = redis.Z{Score: score, Member: member}
		}
	}
	return last
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
	return p.sound()
}

// at returns the little-endian number in these bytes.
func (p *planted) at(from, length int) (n uint64) {
	for i := length - 1; i >= 0; i-- {
		n = n<<8 | uint64(p.state[from+i])
	}
	return n
}
