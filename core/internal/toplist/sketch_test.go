package toplist

import (
	"slices"
	"testing"
)

// A subject that begins to be refused often is soon counted, though the sketch is full of others
// that were refused before.
func TestALateSubjectFindsAPlace(t *testing.T) {
	s := sketch{size: 256}
	for range 20 {
		for n := range 256 {
			s.note([]byte(user(n)), 1)
		}
	}
	tail := 1_000
	for range 500 {
		s.note([]byte("late"), 1)
		for range 50 {
			tail++
			s.note([]byte(user(tail)), 1)
		}
	}
	if got := s.entries()[0]; got.Subject != "late" || got.Number < 450 || got.Number > 500 {
		t.Errorf("%v, want about 500 refusals of the late subject", got)
	}
}

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
