package marks

import "slices"

// put puts a mark into the table, unless a newer one is there.
func (s *Set) put(m *Mark) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.putLocked(m)
}

// putLocked is put. The set must be locked.
func (s *Set) putLocked(m *Mark) {
	r := s.rule(m.Rule)
	m.Rule = r.name // a text that all marks share
	e := r.subjects.add(m.Subject)
	place := e.of(m.isBan())
	before := place.Load()
	if there := before.confirmed(); !m.unconfirmed && there != nil && there.number >= m.number {
		if there.number == m.number {
			if place.found = s.reading; m.ends < before.ends && !before.unconfirmed { // the machine was suspended
				place.Store(m)
			}
			return
		}
		if !s.takes || place.found == s.reading {
			return
		}
	}
	if !m.unconfirmed {
		place.found = s.reading
	}
	if network, ok := Network(m.Subject); ok && !m.isByRule() {
		r.networks.add(network)
	}
	place.Store(m)
	if before == nil {
		s.asked.Add(1)
		r.asked.Add(1)
		if s.count++; s.count >= s.nextSweep {
			s.sweep()
		}
	}
}

// drop removes a mark from the table, unless a newer one has taken its place.
func (s *Set) drop(m *Mark) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.rule(m.Rule)
	if e := r.subjects.find([]byte(m.Subject)); e != nil {
		place := e.of(m.isBan())
		if there := place.Load().confirmed(); there != nil && there.number <= m.number {
			s.forget(r, place)
		}
	}
}

// beginReading says that all marks are read from now on. With keep, what is newer in the table stays.
func (s *Set) beginReading(keep bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reading++
	s.takes = !keep
}

// endReading removes the marks that were not found since beginReading. With keep, those that have not
// ended stay, and are returned.
func (s *Set) endReading(keep bool) (missing []*Mark) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.takes = false
	now := s.Now()
	for _, r := range s.rules {
		for e := range r.subjects.all() {
			for _, place := range e.places() {
				m := place.Load().confirmed()
				switch {
				case m == nil || place.found == s.reading:
				case keep && m.ends > now:
					missing = append(missing, m)
				default:
					s.forget(r, place)
				}
			}
		}
	}
	return missing
}

// isMissing reports whether a mark that endReading returned is still the one in the table, and was not
// found in Redis since.
func (s *Set) isMissing(m *Mark) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.rule(m.Rule).subjects.find([]byte(m.Subject))
	if e == nil {
		return false
	}
	place := e.of(m.isBan())
	return place.found < s.reading && place.Load().confirmed() == m && m.ends > s.Now()
}

// forget removes the confirmed mark of a place. The set must be locked.
func (s *Set) forget(r *Rule, place *place) {
	if m := place.Load(); m.unconfirmed {
		u := *m
		u.before = nil
		place.Store(&u)
	} else {
		s.clear(r, place)
	}
}

// clear empties a place that has a mark. The set must be locked.
func (s *Set) clear(r *Rule, place *place) {
	place.Store(nil)
	s.asked.Add(-1)
	r.asked.Add(-1)
	s.count--
}

// minSweep is the smallest number of marks at which those that have ended are removed.
const minSweep = 1_000

// sweep removes the marks that have ended. The set must be locked.
func (s *Set) sweep() {
	now := s.Now()
	for _, r := range s.rules {
		for e := range r.subjects.all() {
			for _, place := range e.places() {
				if m := place.Load(); m != nil && m.ends <= now && (m.before == nil || m.before.ends <= now) {
					s.clear(r, place)
				}
			}
		}
	}
	s.nextSweep = max(minSweep, 2*s.count)
}

// All returns all marks that this process knows and that hold now, in no order.
func (s *Set) All() (all []*Mark) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.Now()
	for _, r := range s.rules {
		for e := range r.subjects.all() {
			f := e.found(now)
			all = append(all, f.ban, f.other)
		}
	}
	return slices.DeleteFunc(all, func(m *Mark) bool { return m == nil })
}
