package marks

import (
	"cmp"
	"slices"
	"sync/atomic"
)

// writeHere writes marks of a process without Redis, as act.lua does.
func (s *Set) writeHere(acts []act) (results []done) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	for _, a := range acts {
		m := *a.Mark
		if s.number = max(s.number+1, now); m.number == 0 {
			m.number, m.Since = s.number, now
			if a.span > 0 {
				m.Until = now + a.span
			}
		}
		m.setEnd(now, now)
		before := s.rule(m.Rule).subjects.add(m.Subject).of(m.isBan()).Load()
		d := done{before: before}
		switch {
		case before != nil && before.number >= m.number, before == nil && a.isRemoval():
		case m.isByRule() && before.holding(now) != nil && !before.ByRule: // an operator's ban holds
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

// roomHere reports whether there is room for another mark. The set must be locked.
func (s *Set) roomHere(m *Mark, now int64) bool {
	byRule := m.isByRule()
	if second := now / 1_000_000; byRule && second != s.second {
		s.second, s.bans = second, 0
	}
	if byRule && s.bans >= s.MostBans {
		return false
	}
	if s.count >= s.Most {
		s.sweep()
	}
	if s.count >= s.Most && !s.makeRoom(m) {
		return false
	}
	if byRule {
		s.bans++
	}
	return true
}

// makeRoom drops a hundredth of the marks that make room, those that end first, and reports whether
// there are any. One for a ban by a rule must end before it. The set must be locked.
func (s *Set) makeRoom(m *Mark) bool {
	type held struct {
		*Rule
		place *atomic.Pointer[Mark]
		*Mark
	}
	var spare []held
	for _, r := range s.rules {
		for e := range r.subjects.all() {
			for _, place := range [...]*atomic.Pointer[Mark]{&e.ban, &e.other} {
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
