package marks

import (
	"cmp"
	"slices"
)

// writeHere writes marks of a process without Redis, as act.lua does.
func (s *Set) writeHere(acts []act) (results []done) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now, epoch := s.Now(), s.SinceEpoch()
	for _, a := range acts {
		m := *a.Mark
		if s.number = max(s.number+1, epoch); m.number == 0 {
			m.number, m.Since = s.number, epoch
			if a.span > 0 {
				m.Until = epoch + a.span
			}
		}
		m.setEnd(now, epoch)
		before := s.rule(m.Rule).subjects.add(m.Subject).of(m.isBan()).Load()
		d := done{before: before}
		switch {
		case m.yieldsTo(before, now), before == nil && a.isRemoval():
		case m.ends <= now:
			d.err = ErrEnded
		case before == nil && !s.roomHere(&m, now):
			d.err = ErrFull
		default:
			d.mark = &m
			s.putLocked(&m)
		}
		results = append(results, d)
	}
	return results
}

// yieldsTo reports whether a mark with a number leaves what is there: a newer one, or an operator's ban
// that a rule's would replace.
func (m *Mark) yieldsTo(there *Mark, now int64) bool {
	return there != nil && (there.number >= m.number || m.isByRule() && !there.ByRule && there.holding(now) != nil)
}

// roomHere reports whether there is room for another mark. The set must be locked.
func (s *Set) roomHere(m *Mark, now int64) bool {
	if s.count < s.Most {
		return true
	}
	if m.isByRule() && now < s.noRoom.until && m.ends <= s.noRoom.ends {
		return false
	}
	if s.sweep(); s.count < s.Most || s.makeRoom(m) {
		return true
	}
	s.noRoom.until, s.noRoom.ends = now+1_000_000, m.ends // because to look for room takes 18 ms in a full table
	return false
}

// makeRoom drops the marks that end first of those that may go, up to a hundredth of Most, and reports
// whether there were any. For a rule's ban, only those that end before it may go. The set must be locked.
func (s *Set) makeRoom(m *Mark) bool {
	type held struct {
		*Rule
		*place
		*Mark
	}
	var spare []held
	for _, r := range s.rules {
		for e := range r.subjects.all() {
			for _, place := range e.places() {
				if old := place.Load(); old != nil && old.makesRoom() && !(m.isByRule() && old.ends >= m.ends) {
					spare = append(spare, held{r, place, old})
				}
			}
		}
	}
	slices.SortFunc(spare, func(a, b held) int { return cmp.Compare(a.ends, b.ends) })
	for _, old := range spare[:min(len(spare), 1+s.Most/100)] {
		s.clear(old.Rule, old.place)
	}
	return len(spare) > 0
}
