package algorithm

// Pause is a pause of the calls that go out to a server, which asked for it, or of an operator.
// Times are in microseconds.
type Pause struct {
	Span    int64 // how long the server wants to be left alone; 0: it did not say
	Refused bool  // the server refused a call; otherwise it only announced the pause
	// Base is the Span of a first refusal without one. It doubles with each refusal after the pause
	// of the last one, up to Longest. Refusals are forgotten after Longest, counted from the end of
	// the pause, or when a call was answered.
	Base, Longest int64
	By            string // the operator: see PauseBy; "" for a server
}

// Paused is what a Pause has led to. Times are in microseconds.
type Paused struct {
	At     int64 // of the answer, since the epoch
	Lasts  int64 // until the pause ends
	Longer bool  // that is longer than before
}

// PauseBy returns what the state of a pause says about the operator who began it, or made it
// longer. Author and note have at most 255 bytes each.
func PauseBy(author, note string) string { return string(byte(len(author))) + author + note }

// By returns the author and the note of the operator who began the pause, or made it longer. byHand
// is false if that was a server.
func (p *PauseState) By() (author, note string, byHand bool) {
	if p.by == "" {
		return "", "", false
	}
	end := 1 + int(p.by[0])
	return p.by[1:end], p.by[end:], true
}

// Pause begins a pause, or makes it longer. Refusals during a pause count once. It returns for how
// long the state counts, or 0 if there is nothing to remember.
func (s *State) Pause(now int64, p *Pause) (paused Paused, lives int64) {
	if s.At > now {
		new(pause).anchor(s, moment{now, now}, nil)
	}
	h, span := s.pausing(), p.Span
	if h.forgotten <= now {
		h.Refusals = 0
	}
	if h.Ends <= now {
		if span == 0 {
			span = p.first(h.Refusals)
		}
		if p.Refused {
			h.Refusals = min(h.Refusals+1, 255)
		}
	}
	if now+span > h.Ends {
		h.Ends, h.by, paused.Longer = now+span, p.By, true
	}
	s.At = now
	remembered := h.Ends
	if p.Refused {
		remembered += p.Longest
	}
	h.forgotten = max(h.forgotten, remembered)
	paused.At, paused.Lasts = now, max(0, h.Ends-now)
	return paused, max(0, h.forgotten-now)
}

// first returns how long a pause lasts after a number of earlier refusals, if the server did not
// say.
func (p *Pause) first(earlier int64) int64 {
	span := min(p.Base, p.Longest)
	for range min(earlier, 40) {
		span = min(2*span, p.Longest)
	}
	return span
}

// PauseOver forgets the refusals before a pause, and reports whether it did. A pause in force
// stays.
func (s *State) PauseOver(now int64) bool {
	if s.More == nil || s.More.other.pause.Ends-max(0, s.At-now) > now {
		return false
	}
	*s = State{}
	return true
}
