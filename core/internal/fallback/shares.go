package fallback

import (
	"sync"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
)

// maxShares bounds how many shares of limits are remembered.
const maxShares = 1000

// shares caches the shares of limits, because making one takes longer than a decision.
type shares struct {
	mu   sync.Mutex
	made map[share]*algorithm.Limit
}

// share is a part of a limit.
type share struct {
	limit *algorithm.Limit
	part  float64
}

// of returns a part of a limit.
func (s *shares) of(limit *algorithm.Limit, part float64) *algorithm.Limit {
	if part == 1 {
		return limit
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if made, ok := s.made[share{limit, part}]; ok {
		return made
	}
	made := limit // a limit merged from several rules may have no countable share
	if smaller, err := limit.Share(part); err == nil {
		made = smaller
	}
	if s.made == nil || len(s.made) >= maxShares {
		s.made = make(map[share]*algorithm.Limit)
	}
	s.made[share{limit, part}] = made
	return made
}
