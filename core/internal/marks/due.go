package marks

import "context"

// dueBan is a ban that is not written yet.
type dueBan struct {
	*Mark
	learned int64 // when the process learned of it, by Options.Now
}

// addDue adds a ban to those that are not written yet.
func (s *strikes) addDue(ban dueBan) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.due == nil {
		s.due = make(map[string]dueBan)
	}
	other, known := s.due[ban.field()]
	if known && other.number < ban.number || !known && len(s.due) < maxWaiting {
		s.due[ban.field()] = ban
	}
}

// takeDue returns some of the bans that are not written yet, in no order. It drops those that have ended,
// and those so old that an operator may have lifted them, and Redis forgotten that.
func (s *strikes) takeDue(now int64) (some []dueBan) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for field, ban := range s.due {
		if s.full || len(some) == inATrip {
			break
		}
		if ban.ends > now && now-ban.learned < fresh.Microseconds() {
			some = append(some, ban)
		}
		delete(s.due, field)
	}
	return some
}

// hasDue reports whether bans are not written yet.
func (s *strikes) hasDue() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.due) > 0
}

// setFull sets whether no bans can be written until the next reading.
func (s *strikes) setFull(full bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.full = full
}

// impose writes the bans that are due. Those without room are tried again after the next reading, and so
// are unconfirmed ones, which hold here for a minute.
func (s *Set) impose(ctx context.Context) {
	for bans := s.strikes.takeDue(s.Now()); len(bans) > 0; bans = s.strikes.takeDue(s.Now()) {
		acts := make([]act, len(bans))
		for i, ban := range bans {
			acts[i].Mark = ban.Mark
		}
		results, err := s.write(ctx, s.MostBans, acts)
		for i, ban := range bans {
			switch {
			case err != nil:
				s.putUnconfirmed(ban.Mark, ban.ends-s.Now())
			case results[i].err != ErrFull:
				continue
			}
			s.strikes.setFull(true)
			s.strikes.addDue(ban)
		}
	}
}
