package algorithm

import "math"

// ban refuses all calls of a subject for a while after it was refused in several consecutive
// windows. It is kept beside the subject's counters, in a key of its own, so that only calls by
// rules with a ban pay for reading a key that hardly ever exists.
type ban struct{ defaults }

// banTerms are the terms of a ban besides its window. Times are in microseconds.
type banTerms struct {
	after   int64 // consecutive windows with a refusal before a ban; 0: bans by hand only
	span    int64 // how long the first ban lasts
	longest int64 // how long a ban lasts at most
}

// banHistory is the state of a ban. The At of its State is the time of the last strike or ban by
// hand. Times are in microseconds.
type banHistory struct {
	ends      int64
	bans      int64 // so far
	strikes   int64 // in a row
	forgotten int64 // when all of this is forgotten
}

func (*ban) properties() Properties {
	return Properties{Name: "Ban", File: "ban", Tag: "bn1", Watches: true, Remembers: true}
}

// Banned returns the limit of a ban. The ban begins when a call was refused in each of several
// consecutive windows, whose number is after (0: by hand only). The first ban lasts for span, and
// each further one twice as long, up to longest. Times are in microseconds.
func Banned(after, span, longest, window int64) Limit {
	return newLimit(Limit{Kind: Ban, Window: window, ban: banTerms{after, span, longest}}, after, span, longest, window)
}

// BansByHand reports whether this is a ban that only an operator imposes.
func (l *Limit) BansByHand() bool { return l.Kind == Ban && l.ban.after == 0 }

func (*ban) limit(*Terms) (Limit, error) { return Limit{}, errNoLimit }

// share returns the ban itself, because a ban cannot be divided.
func (*ban) share(l *Limit, _ float64) (*Limit, error) { return l, nil }

func (*ban) place(now int64, _ *Limit) int64 { return now }

// history returns a state's banHistory, creating it if needed.
func (s *State) history() *banHistory {
	if s.More == nil {
		s.More = &More{ban: new(banHistory)}
	}
	return s.More.ban
}

// anchor moves the ban back with the clock, so that it lasts as long as it would have.
func (*ban) anchor(s *State, t moment, _ *Limit) {
	h, back := s.history(), s.At-t.place
	h.ends, h.forgotten, s.At = h.ends-back, h.forgotten-back, t.place
}

func (*ban) look(s *State, t moment, _ *Limit, _ int64) (remaining, retryAfter int64) {
	if s.More == nil {
		return 0, 0
	}
	return 0, max(0, s.More.ban.ends-t.now)
}

func (*ban) resetAfter(s *State, t moment, _ *Limit) int64 {
	if s.More == nil {
		return 0
	}
	return max(0, s.More.ban.forgotten-t.now)
}

func (*ban) charge(*State, moment, *Limit, int64, string) effect { return effect{} }

// steady returns the rest of the current window, because a refusal in the next window must be
// counted too. With bans by hand only, nothing is counted, so the answer stays valid.
func (*ban) steady(l *Limit, v *Verdict, _ int64) int64 {
	switch {
	case v.RetryAfter > 0:
		return v.RetryAfter
	case l.ban.after > 0:
		return l.Window - v.At%l.Window
	default:
		return math.MaxInt64
	}
}

func (*ban) strike(l *Limit, s *State, now int64) (holds, resetAfter int64, noted bool) {
	if s.At > now {
		l.anchored(s, moment{now, now}, true)
	}
	h := s.history()
	if h.forgotten <= now {
		*h = banHistory{}
		s.At = 0
	}
	switch this, last := now/l.Window, s.At/l.Window; {
	case h.strikes > 0 && last == this:
		return max(0, h.ends-now), 0, false
	case h.strikes > 0 && last == this-1:
		h.strikes++
	default:
		h.strikes = 1
	}
	if h.strikes >= l.ban.after {
		h.ends, h.bans, h.strikes = now+l.ban.lasts(h.bans), min(h.bans+1, 255), 0
	}
	s.At, h.forgotten = now, max(h.forgotten, max(h.ends, now)+l.ban.longest)
	return max(0, h.ends-now), h.forgotten - now, true
}

// readState reads the state of a ban: see ban.lua.
func (*ban) readState(_ *Limit, text string, f *Found) error {
	if len(text) != banStateLength {
		return errReply
	}
	h := banHistory{ends: littleEndian(text[:7]), strikes: littleEndian(text[14:16]), bans: littleEndian(text[16:17]), forgotten: littleEndian(text[17:])}
	if h.ends > h.forgotten || h.forgotten >= never {
		return errReply
	}
	f.more = More{ban: &h}
	f.State = State{At: littleEndian(text[7:14]), More: &f.more}
	return nil
}

// lasts returns how long a ban lasts after a number of earlier ones.
func (t *banTerms) lasts(earlier int64) int64 {
	span := min(t.span, t.longest)
	for range min(earlier, 40) {
		span = min(2*span, t.longest)
	}
	return span
}

// Impose bans by hand, for a span from now or until the ban in force ends, whichever is later.
// Earlier bans are not forgotten any sooner. The count of strikes in a row restarts at 0. Impose
// reports whether the ban lasts longer than before.
func (s *State) Impose(now, span int64) (resetAfter int64, changed bool) {
	if s.At > now {
		new(ban).anchor(s, moment{now, now}, nil)
	}
	h := s.history()
	if h.forgotten <= now {
		h.bans = 0
	}
	changed = now+span > h.ends
	s.At, h.ends, h.strikes = now, max(h.ends, now+span), 0
	h.forgotten = max(h.forgotten, h.ends)
	return h.forgotten - now, changed
}
