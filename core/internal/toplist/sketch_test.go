package toplist

import (
	"slices"
	"testing"
)

// Up to 256 subjects are counted exactly.
func TestFewSubjectsAreCountedExactly(t *testing.T) {
	s := sketch{size: 256}
	for range 20 {
		for n := range 256 {
			s.note([]byte(user(n)), float64(1+n))
		}
	}
	for i, e := range s.entries() {
		if n := 255 - i; e != (Entry{user(n), float64(20 * (1 + n))}) {
			t.Errorf("at %d: %v", i, e)
		}
	}
}

// The subjects with the highest shares are kept.
func TestTheHighestSharesAreKept(t *testing.T) {
	s := sketch{of: Near, size: 3}
	for n, share := range []float64{0.8, 0.85, 0.95, 0.9, 0.8, 0.97, 0.83} {
		s.note([]byte(user(n)), share)
	}
	s.note([]byte(user(3)), 0.99)
	s.note([]byte(user(3)), 0.81)
	s.note([]byte(user(7)), 0.84)
	got := s.entries()[:3]
	if want := []Entry{{user(3), 0.99}, {user(5), 0.97}, {user(2), 0.95}}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}
