package banlist

import (
	"context"
	"hash/maphash"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"github.com/accesslimit/accesslimit/core/internal/panics"
)

const (
	// maxWaiting is how many bans can wait to be listed. Further bans are listed after a later call
	// of their subjects. So a process lists no more than this per second, whatever callers do.
	maxWaiting = 500
	// delay is how long the first ban waits for others at most. It waits at least half as long.
	delay = time.Second
	// maxKnown and knownFor bound how many bans a process remembers as listed, and for how long.
	// The actual bounds are up to twice as large. Then bans are listed again, in case the list was
	// lost.
	maxKnown = 50_000
	knownFor = 10 * time.Minute
	// sameEnd is by how much two readings of one ban's end may differ, in microseconds, because the
	// clock may have been set.
	sameEnd = int64(time.Second / time.Microsecond)
)

// Sightings collects the bans that calls run into, and passes each on once, in the background, to
// be listed. It is safe for concurrent use.
type Sightings struct {
	write func(context.Context, []Sighting) error
	start func(func()) // runs a function in the background
	seed  maphash.Seed

	panicked func(err error)

	mu            sync.Mutex
	waiting       []Sighting
	timer         *time.Timer // runs while bans wait
	closed        bool
	known, former map[uint64]int64 // the ends of bans that are listed, by the hashes of their keys
	turned        time.Time        // when known was last emptied

	writing chan struct{} // holds a value while bans are being written
}

// NewSightings returns a Sightings that passes bans on to write, in the background. It reports
// panics to panicked.
func NewSightings(write func(context.Context, []Sighting) error, start func(func()), panicked func(err error)) *Sightings {
	return &Sightings{write: write, start: start, panicked: panicked, seed: maphash.MakeSeed(), writing: make(chan struct{}, 1)}
}

// See takes note of a ban with this key in the store. It copies what it keeps.
func (s *Sightings) See(key []byte, rule string, subject []byte, ends int64) {
	if len(subject) > MaxSubject {
		return
	}
	hash := maphash.Bytes(s.seed, key)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || len(s.waiting) >= maxWaiting || s.knows(hash, ends) {
		return
	}
	s.known[hash] = ends
	s.waiting = append(s.waiting, Sighting{strings.Clone(rule), string(subject), ends})
	if s.timer == nil {
		flush := func() { s.start(func() { s.Flush(context.Background()) }) }
		s.timer = time.AfterFunc(delay/2+rand.N(delay/2), panics.Guard(flush, s.panicked))
	}
}

// knows reports whether a ban was passed on before. s must be locked.
func (s *Sightings) knows(hash uint64, ends int64) bool {
	if now := time.Now(); s.known == nil || len(s.known) >= maxKnown || now.Sub(s.turned) > knownFor {
		s.known, s.former, s.turned = make(map[uint64]int64), s.known, now
	}
	for _, listed := range [...]map[uint64]int64{s.known, s.former} {
		if known, ok := listed[hash]; ok && max(known-ends, ends-known) < sameEnd {
			return true
		}
	}
	return false
}

// Flush passes on the bans that wait. It returns when they and those of an earlier Flush are
// written, or when the context ends. If writing fails, they are forgotten, so that later calls of
// their subjects get them listed.
func (s *Sightings) Flush(ctx context.Context) {
	select {
	case s.writing <- struct{}{}:
		defer func() { <-s.writing }()
	case <-ctx.Done():
		return
	}
	bans := s.take()
	if len(bans) == 0 {
		return
	}
	if err := s.write(ctx, bans); err != nil {
		s.mu.Lock()
		s.known, s.former = nil, nil
		s.mu.Unlock()
	}
}

func (s *Sightings) take() (bans []Sighting) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.timer != nil {
		s.timer.Stop()
	}
	bans, s.waiting, s.timer = s.waiting, nil, nil
	return bans
}

// Close passes on the bans that wait. Later ones are ignored.
func (s *Sightings) Close() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.Flush(context.Background())
}
