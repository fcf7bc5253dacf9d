package ruleorigin

import (
	"slices"
	"sync"
)

// Sets holds the sets of a limiter that guards follow. The zero value has none. It is safe for
// concurrent use.
type Sets struct {
	mu   sync.Mutex
	sets []Followed
}

// Followed is a set that guards follow.
type Followed interface{ State() State }

// Add adds a set, unless it was added before.
func (s *Sets) Add(set Followed) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !slices.Contains(s.sets, set) {
		s.sets = append(s.sets, set)
	}
}

// States returns the states of the sets, in the order in which they were added.
func (s *Sets) States() (all []State) {
	s.mu.Lock()
	sets := slices.Clone(s.sets)
	s.mu.Unlock()
	for _, set := range sets {
		all = append(all, set.State())
	}
	return all
}
