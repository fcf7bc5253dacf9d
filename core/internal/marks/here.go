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
	now, epoch := s.now(), s.SinceEpoch()
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
		case before != nil && before.number >= m.number, before == nil && a.isRemoval():
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
	if s.count >= s.Most && !s.dropBans(m, byRule) {
		return false
	}
	if byRule {
		s.bans++
	}
	return true
}

// dropBans drops a hundredth of the bans by rules, those that end first, and reports whether there are
// any. One for another ban must end before it. The set must be locked.
func (s *Set) dropBans(m *Mark, byRule bool) bool {
	type held struct {
		*Rule
		place *atomic.Pointer[Mark]
		*Mark
	}
	var bans []held
	for _, r := range s.rules {
		for e := range r.subjects.all() {
			if ban := e.ban.Load(); ban != nil && ban.isByRule() && !(byRule && ban.ends >= m.ends) {
				bans = append(bans, held{r, &e.ban, ban})
			}
		}
	}
	slices.SortFunc(bans, func(a, b held) int { return cmp.Compare(a.ends, b.ends) })
	for _, ban := range bans[:min(len(bans), 1+s.Most/100)] {
		s.clear(ban.Rule, ban.place)
	}
	return len(bans) > 0
}
