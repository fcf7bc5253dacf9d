package toplist

import (
	"math"
	"slices"
	"testing"
	"time"
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

// A subject that is refused slowly, among thousands that are refused ten times each and not again, is
// found from 1/257 of all refusals on.
func TestASlowSubjectIsFound(t *testing.T) {
	s, slow := newSketch(Refused), 0
	for n := range 4_000 {
		s.note([]byte(user(n)), 10)
		if n >= 400 && n%20 == 0 { // the sketch is full before
			s.note([]byte("slow"), 1)
			slow++
		}
	}
	total := 4_000*10 + slow
	e := s.found["slow"]
	if e == nil {
		t.Fatalf("%d of %d refusals are not found", slow, total)
	}
	if got := e.score - e.missed; got > float64(slow) || got < float64(slow)-float64(total)/257 {
		t.Errorf("%g refusals, want %d or at most 1/257 of all %d less", got, slow, total)
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

// Whatever the rate is, the weights of what is noted add up to what was observed, and little more
// than maxASecond is noted in a second. Soon after a flood, everything is noted.
func TestSampling(t *testing.T) {
	for _, rate := range []int{100, 2_000, 3_000, 100_000, 10_000_000} {
		var s sampler
		var number, noted uint64
		var now time.Duration
		step, observed, total := time.Second/time.Duration(rate), 3*min(rate, 2_000_000), 0.0
		for range observed {
			number++
			now += step
			if weight := s.weight(number); weight > 0 {
				noted++
				total += float64(weight)
				s.count(now)
			}
		}
		if off := math.Abs(total/float64(observed) - 1); off > 0.05 {
			t.Errorf("%d a second: %v of %d", rate, total, observed)
		}
		doublings := math.Log2(float64(max(rate, maxASecond)) / maxASecond)
		if most := maxASecond * (now.Seconds() + 2 + doublings); float64(noted) > most {
			t.Errorf("%d a second: %d were noted, want at most %v", rate, noted, most)
		}
		if all := s.slow(now+time.Second) && rate > 10_000; all {
			t.Errorf("%d a second: everything is noted after a second", rate)
		}
		if !s.slow(now + 30*time.Second) {
			t.Errorf("%d a second: not everything is noted after half a minute", rate)
		}
	}
}

// BenchmarkFlood measures what an observation costs when a rule refuses as fast as it can.
func BenchmarkFlood(b *testing.B) {
	start := time.Now()
	table := New(NewMemory(), func(func()) {}, nil)
	table.now = func() time.Duration { return time.Since(start) }
	defer table.Close()
	r := table.Rule("api")
	b.RunParallel(func(pb *testing.PB) {
		subject := []byte("user:alice")
		for number := uint64(0); pb.Next(); number++ {
			if weight := r.Weight(Refused, number); weight > 0 {
				r.NoteRefusal(weight, subject)
			}
		}
	})
}

// BenchmarkNote measures what a noted observation costs, of subjects that are new each time.
func BenchmarkNote(b *testing.B) {
	table := New(NewMemory(), func(func()) {}, nil)
	defer table.Close()
	r, subject := table.Rule("api"), []byte("user:00000000")
	for n := 0; b.Loop(); n++ {
		for i, rest := len(subject)-1, n; i > 4; i, rest = i-1, rest/10 {
			subject[i] = byte('0' + rest%10)
		}
		r.NoteRefusal(1, subject)
	}
}
