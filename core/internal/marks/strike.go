package marks

import (
	"fmt"
	"math"
)

// Terms are the terms of a rule's bans. Times are in microseconds.
type Terms struct {
	Window  int64 // in which a subject is refused or not
	After   int64 // how many windows in a row lead to a ban
	Span    int64 // how long the first ban lasts
	Longest int64 // and how long the longest
}

// struck is the state of a subject's strikes in a process: see strike.lua.
type struck struct {
	begin, ends, last, row, bans, seen, forgotten int64
}

// strike counts that the subject was refused at a time, as strike.lua does.
func (s *struck) strike(now, at int64, t *Terms) {
	if s.seen > now { // the clock stepped back: a ban lasts as long as it would have
		back := s.seen - now
		s.begin, s.ends, s.forgotten = max(0, s.begin-back), max(0, s.ends-back), max(0, s.forgotten-back)
		s.last, s.seen = now/t.Window, now
	}
	if s.forgotten <= now {
		*s = struck{}
	}
	if at = min(at, now); at < s.ends {
		return
	}
	switch this := at / t.Window; {
	case this > s.last && s.row > 0 && this == s.last+1:
		s.last, s.row = this, s.row+1
	case this > s.last:
		s.last, s.row = this, 1
	case s.row > 0 && this == s.last-s.row:
		s.row++
	default:
		return
	}
	if s.row >= t.After {
		s.begin, s.ends = at, at+t.lasts(s.bans)
		s.row, s.bans = 0, min(s.bans+1, 255)
	}
	s.seen, s.forgotten = now, max(s.forgotten, max(s.ends, at)+t.Longest)
}

// record returns what counts at a time, as record.lua does.
func (s *struck) record(now int64, t *Terms) (r Record) {
	last, forgotten := s.last, s.forgotten
	if s.seen > now {
		last, forgotten = now/t.Window, forgotten-(s.seen-now)
	}
	if forgotten <= now {
		return Record{}
	}
	if r.Bans = s.bans; now/t.Window <= last+1 {
		r.Strikes = s.row
	}
	return r
}

// why returns the reason for a ban in words.
func (t *Terms) why() string {
	if t.After == 1 {
		return "refused in 1 window"
	}
	return fmt.Sprintf("refused in %d windows in a row", t.After)
}

// lasts returns how long a ban lasts after a number of earlier ones.
func (t *Terms) lasts(earlier int64) int64 {
	return int64(min(float64(t.Span)*math.Pow(2, float64(min(earlier, 40))), float64(t.Longest)))
}

// Strike is a refusal that may lead to a ban.
type Strike struct {
	Key           string // of the subject's strikes
	Rule, Subject string
	At            int64 // when the subject was refused, by the clock that counts, in microseconds since the epoch
	Terms         *Terms
	// Imposes reports whether the ban is imposed. That of a rule in DryRun is only counted.
	Imposes bool
}
