package toplist

import (
	"cmp"
	"maps"
	"slices"
)

// sketch finds the subjects with the highest numbers, in bounded memory.
//
// It counts refusals as Space-Saving does (Metwally, Agrawal and El Abbadi, "Efficient Computation
// of Frequent and Top-k Elements in Data Streams", 2005), in the form of Agarwal et al., "Mergeable
// Summaries" (2012): if there are too many subjects, those with the highest scores stay, and the
// greatest score that is dropped is the floor, from which new subjects continue. Whatever the order
// of the calls, the floor is at most 1/(size+1) of all refusals. So a subject that has more is in
// the sketch. Its number is what was counted since it entered the sketch. It is never too high, and
// too low by at most the floor at that moment.
//
// For shares, it keeps the highest ones, and the floor is the highest share that was dropped.
type sketch struct {
	of    kind
	size  int
	floor float64
	found map[string]*scored
}

type scored struct {
	subject string
	score   float64
	missed  float64 // the part of the score that may not be the subject's own
}

// newSketch returns a sketch for what a process notes about a rule.
func newSketch(of kind) sketch { return sketch{of: of, size: watched[of]} }

// Entry is a subject, or a rule and a subject, with a number.
type Entry struct {
	Subject string
	Number  float64
}

// note joins a number to the number of a subject.
func (s *sketch) note(subject []byte, n float64) {
	if e := s.found[string(subject)]; e != nil {
		e.score = s.of.join(e.score, n)
		return
	}
	if s.of == Refused {
		s.put(scored{string(subject), s.floor + n, s.floor})
	} else if n > s.floor {
		s.put(scored{string(subject), n, 0})
	}
}

func (s *sketch) put(e scored) {
	if s.found == nil {
		s.found = make(map[string]*scored)
	}
	s.found[e.subject] = &e
	if len(s.found) > s.size+s.size/4 { // trim is too slow to run for each new subject
		s.trim()
	}
}

// trim drops the subjects with the lowest scores.
func (s *sketch) trim() {
	scores := make([]float64, 0, len(s.found))
	for _, e := range s.found {
		scores = append(scores, e.score)
	}
	slices.Sort(scores)
	excess := len(scores) - s.size
	s.floor = scores[excess-1]
	lower, _ := slices.BinarySearch(scores, s.floor)
	ties := excess - lower // how many of those at the floor are dropped
	maps.DeleteFunc(s.found, func(_ string, e *scored) bool {
		if e.score == s.floor {
			ties--
		}
		return e.score < s.floor || e.score == s.floor && ties >= 0
	})
}

// entries returns the subjects with their numbers, the highest first.
func (s *sketch) entries() []Entry {
	var entries []Entry
	for subject, e := range s.found {
		entries = append(entries, Entry{subject, e.score - e.missed})
	}
	return greatest(entries, len(entries))
}

// remove removes entries that were added to a list. An empty sketch begins afresh.
func (s *sketch) remove(added []Entry) {
	for _, e := range added {
		delete(s.found, e.Subject)
	}
	if len(s.found) == 0 {
		s.floor = 0
	}
}

// merge adds the content of another sketch.
func (s *sketch) merge(other *sketch) {
	for subject, e := range other.found {
		s.note([]byte(subject), e.score-e.missed)
	}
}

// greatest returns the entries with the highest numbers, at most n, in this order. It changes the
// slice.
func greatest(entries []Entry, n int) []Entry {
	slices.SortFunc(entries, func(a, b Entry) int {
		return cmp.Or(cmp.Compare(b.Number, a.Number), cmp.Compare(a.Subject, b.Subject))
	})
	return entries[:min(n, len(entries))]
}
