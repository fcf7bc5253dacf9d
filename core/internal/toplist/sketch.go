package toplist

import (
	"cmp"
	"slices"
)

// sketch holds some subjects with a number each. It counts refusals by the algorithm Space-Saving
// (Metwally et al., 2005): if it is full, a new subject takes the place of the one with the lowest
// rank, and continues from that rank. So a subject that is refused often is never displaced for
// long. Unlike there, the number of a subject is only what was counted since it came, so it is never
// too high. Numbers are taken out from time to time, and ranks are halved then. A subject that is
// refused all the time stays, and is counted exactly.
type sketch struct {
	size    int
	places  map[string]int // in entries
	entries []ranked
}

type ranked struct {
	subject      string
	rank, number float64
}

// Entry is a subject, or a rule and a subject, with a number.
type Entry struct {
	Subject string
	Number  float64
}

// count adds to the number of a subject.
func (s *sketch) count(subject []byte, n float64) {
	e, known := s.find(subject)
	switch {
	case known:
		e.rank, e.number = e.rank+n, e.number+n
	default:
		e = s.put(e, subject)
		e.rank, e.number = e.rank+n, n
	}
}

// raise sets the number of a subject, unless it is higher already. If the sketch is full, a new
// subject must have a higher one than another.
func (s *sketch) raise(subject []byte, n float64) {
	e, known := s.find(subject)
	switch {
	case known:
		n = max(n, e.number)
	case e != nil && n <= e.rank:
		return
	default:
		e = s.put(e, subject)
	}
	e.rank, e.number = n, n
}

// find returns the entry of a subject. If there is none, it returns the entry with the lowest rank,
// or nil if there is room for another.
func (s *sketch) find(subject []byte) (e *ranked, known bool) {
	if at, ok := s.places[string(subject)]; ok {
		return &s.entries[at], true
	}
	if len(s.entries) < s.size {
		return nil, false
	}
	e = &s.entries[0]
	for i := range s.entries {
		if s.entries[i].rank < e.rank {
			e = &s.entries[i]
		}
	}
	return e, false
}

// put gives an entry to a new subject, or adds one if that is nil.
func (s *sketch) put(e *ranked, subject []byte) *ranked {
	text := string(subject)
	if e == nil {
		if s.places == nil {
			s.places = make(map[string]int)
		}
		s.places[text] = len(s.entries)
		s.entries = append(s.entries, ranked{subject: text})
		return &s.entries[len(s.entries)-1]
	}
	at := s.places[e.subject]
	delete(s.places, e.subject)
	s.places[text] = at
	e.subject = text
	return e
}

// take returns at most n subjects with the highest numbers, and sets these to 0.
func (s *sketch) take(n int) (taken []Entry) {
	for _, e := range s.entries {
		if e.number > 0 {
			taken = append(taken, Entry{e.subject, e.number})
		}
	}
	taken = greatest(taken, n)
	for _, e := range taken {
		s.entries[s.places[e.Subject]].number = 0
	}
	for i := range s.entries {
		s.entries[i].rank /= 2
	}
	return taken
}

// waits reports whether there is a number that was not taken.
func (s *sketch) waits() bool {
	return slices.ContainsFunc(s.entries, func(e ranked) bool { return e.number > 0 })
}

// greatest returns the entries with the highest numbers, at most n, in this order. It changes the
// slice.
func greatest(entries []Entry, n int) []Entry {
	slices.SortFunc(entries, func(a, b Entry) int {
		return cmp.Or(cmp.Compare(b.Number, a.Number), cmp.Compare(a.Subject, b.Subject))
	})
	return entries[:min(n, len(entries))]
}
