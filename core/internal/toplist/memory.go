package toplist

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"
)

// maxInMemory bounds the entries of all slots in a process. Beyond that, the oldest minutes are
// forgotten. It is enough for one minute of all rules. With subjects of 255 bytes, that takes 22
// MB.
const maxInMemory = 75_000

// Memory holds the slots of this process, if there is no Redis. Make one with NewMemory.
type Memory struct {
	clock   func() time.Time
	mu      sync.Mutex
	minutes map[int64]map[slot]map[string]float64 // since the epoch
	size    int                                   // of all slots
}

// NewMemory returns empty slots.
func NewMemory() *Memory { return &Memory{clock: time.Now} }

// slot is a list of a minute.
type slot struct {
	list string
	of   kind
}

// Add implements Slots. It never fails.
func (s *Memory) Add(_ context.Context, list string, of kind, entries []Entry) (added int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.minute()
	s.forget(func(minute int64) bool { return minute <= now-keptFor || minute > now })
	scores := s.slot(now, slot{list, of})
	s.size -= len(scores)
	for part := range slices.Chunk(entries, maxTogether) { // as in Redis, so that both keep the same
		addPart(scores, of, part)
	}
	s.size += len(scores)
	for oldest := now - keptFor; s.size > maxInMemory && oldest < now; oldest++ {
		s.forget(func(minute int64) bool { return minute == oldest })
	}
	return len(entries), nil
}

// addPart does what flush.lua does.
func addPart(scores map[string]float64, of kind, part []Entry) {
	floor := floorOf(entriesOf(scores), of)
	for _, e := range part {
		score, known := scores[e.Subject]
		if !known {
			score = floor
		}
		scores[e.Subject] = of.join(score, e.Number)
	}
	cut(scores, lengths[of])
}

// slot returns the scores of a list in a minute, by their subjects.
func (s *Memory) slot(minute int64, of slot) map[string]float64 {
	if s.minutes == nil {
		s.minutes = make(map[int64]map[slot]map[string]float64)
	}
	lists := s.minutes[minute]
	if lists == nil {
		lists = make(map[slot]map[string]float64)
		s.minutes[minute] = lists
	}
	if lists[of] == nil {
		lists[of] = make(map[string]float64)
	}
	return lists[of]
}

// forget removes some minutes.
func (s *Memory) forget(which func(minute int64) bool) {
	for minute, lists := range s.minutes {
		if which(minute) {
			for _, numbers := range lists {
				s.size -= len(numbers)
			}
			delete(s.minutes, minute)
		}
	}
}

// read implements Slots.
func (s *Memory) read(_ context.Context, list string, minutes int) (m Minutes, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.minute()
	m.Since = time.Unix(60*(now-int64(minutes)), 0)
	for of := range kinds {
		for minute := now - int64(minutes); minute <= now; minute++ {
			m.Slots[of] = append(m.Slots[of], entriesOf(s.minutes[minute][slot{list, of}]))
		}
	}
	return m, nil
}

// Here implements Slots.
func (s *Memory) Here() bool { return true }

func (s *Memory) minute() int64 { return s.clock().Unix() / 60 }

// cut keeps a number of entries with the highest scores, as ZRANGE orders them.
func cut(scores map[string]float64, length int) {
	if len(scores) <= length {
		return
	}
	entries := entriesOf(scores)
	slices.SortFunc(entries, func(a, b Entry) int {
		return cmp.Or(cmp.Compare(b.Number, a.Number), cmp.Compare(b.Subject, a.Subject))
	})
	for _, e := range entries[length:] {
		delete(scores, e.Subject)
	}
}

func entriesOf(numbers map[string]float64) (entries []Entry) {
	for subject, number := range numbers {
		entries = append(entries, Entry{subject, number})
	}
	return entries
}
