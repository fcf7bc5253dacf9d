package algorithm

// Pause is a pause of the calls that go out to a server, which asked for it. Times are in
// microseconds. A pause is a ban of the subject, so that whatever knows bans knows pauses.
type Pause struct {
	Span    int64 // how long the server wants to be left alone; 0: it did not say
	Refused bool  // the server refused a call; otherwise it only announced the pause
	// Base is the Span of a first refusal without one. It doubles with each refusal after the pause
	// of the last one, up to Longest. Refusals are forgotten after Longest, counted from the end of
	// the pause, or when a call was answered.
	Base, Longest int64
}

// Paused is what a Pause has led to. Times are in microseconds.
type Paused struct {
	At     int64 // of the answer, since the epoch
	Lasts  int64 // until the pause ends
	Longer bool  // that is longer than before
}

// Pause begins a pause, or makes it longer. Refusals during a pause count once. It returns for how
// long the state counts, or 0 if there is nothing to remember.
func (s *State) Pause(now int64, p *Pause) (paused Paused, lives int64) {
	if s.At > now {
		new(ban).anchor(s, moment{now, now}, nil)
	}
	h, span := s.history(), p.Span
	if h.forgotten <= now {
		h.bans = 0
	}
	if h.ends <= now {
		if span == 0 {
			span = (&banTerms{span: p.Base, longest: p.Longest}).lasts(h.bans)
		}
		if p.Refused {
			h.bans = min(h.bans+1, 255)
		}
	}
	paused.Longer = now+span > h.ends
	s.At, h.ends, h.strikes = now, max(h.ends, now+span), 0
	remembered := h.ends
	if p.Refused {
		remembered += p.Longest
	}
	h.forgotten = max(h.forgotten, remembered)
	paused.At, paused.Lasts = now, max(0, h.ends-now)
	return paused, max(0, h.forgotten-now)
}

// PauseOver forgets the refusals before a pause, and reports whether it did. A pause or a ban in force
// stays.
func (s *State) PauseOver(now int64) bool {
	if s.More == nil || s.More.ban == nil || s.More.ban.ends-max(0, s.At-now) > now {
		return false
	}
	*s = State{}
	return true
}

// AppendPause appends what ban_pause.lua takes.
func AppendPause(argv []any, p *Pause) []any {
	return append(argv, p.Span, boxed(p.Refused), p.Base, p.Longest)
}

// ReadPaused reads what ban_pause.lua replied.
func ReadPaused(reply []any) (p Paused, err error) {
	ends, longer, err := ReadImposed(reply)
	if err == nil {
		p.At = reply[2].(int64)
		p.Lasts, p.Longer = ends-p.At, longer
	}
	return p, err
}
