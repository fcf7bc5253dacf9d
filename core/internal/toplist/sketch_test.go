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
			s.count([]byte(user(n)), 1)
		}
	}
	s.take(0)
	tail := 1_000
	for range 500 {
		s.count([]byte("late"), 1)
		for range 50 {
			tail++
			s.count([]byte(user(tail)), 1)
		}
	}
	if got := s.take(1); len(got) != 1 || got[0].Subject != "late" || got[0].Number < 450 || got[0].Number > 500 {
		t.Errorf("%v, want about 500 refusals of the late subject", got)
	}
}

// A subject that is refused all the time is not displaced after a flush, and is counted exactly.
func TestAConstantSubjectIsCountedExactly(t *testing.T) {
	s := sketch{size: 256}
	tail := 0
	for flush := range 10 {
		s.count([]byte("constant"), 1)
		for range 700 {
			tail++
			s.count([]byte(user(tail)), 1)
		}
		s.count([]byte("constant"), 9)
		if got := s.take(1); flush > 0 && got[0] != (Entry{"constant", 10}) {
			t.Errorf("flush %d: %v", flush, got)
		}
	}
}

// The subjects with the highest shares are kept.
func TestTheHighestSharesAreKept(t *testing.T) {
	s := sketch{size: 3}
	for n, share := range []float64{0.8, 0.85, 0.95, 0.9, 0.8, 0.97, 0.83} {
		s.raise([]byte(user(n)), share)
	}
	s.raise([]byte(user(3)), 0.99)
	s.raise([]byte(user(3)), 0.81)
	s.raise([]byte(user(7)), 0.84)
	got := s.take(5)
	if want := []Entry{{user(3), 0.99}, {user(5), 0.97}, {user(2), 0.95}}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}
