package algorithm

import (
	"cmp"
	"math"
)

// pause lets no call go out until a time is over, because a server or an operator asked for that.
// It is asked beside the counters of a call, and is never charged.
type pause struct{ defaults }

// PauseLimit stands for all pauses, which have no terms.
var PauseLimit = newLimit(Limit{Kind: Pausing})

// PauseState is what the state of a pause says. Times are in microseconds since the epoch.
type PauseState struct {
	Ends     int64 // it is over from then on
	Refusals int64 // by the server, in a row

	forgotten int64  // when the refusals are
	by        string // see PauseBy
}

func (*pause) properties() Properties {
	return Properties{Name: "Pausing", File: "pause", Tag: "ps1", Pauses: true, Remembers: true}
}

func (*pause) limit(*Terms) (Limit, error) { return Limit{}, errNoLimit }

// share returns the pause itself, because it cannot be divided.
func (*pause) share(l *Limit, _ float64) (*Limit, error) { return l, nil }

func (*pause) place(now int64, _ *Limit) int64 { return now }

// pausing returns a state's PauseState, creating it if needed.
func (s *State) pausing() *PauseState {
	if s.More == nil {
		s.More = &More{other: &other{pause: new(PauseState)}}
	}
	return s.More.other.pause
}

// anchor moves the pause back with the clock, so that it lasts as long as it would have.
func (*pause) anchor(s *State, t moment, _ *Limit) {
	*s.pausing() = s.pausing().movedBack(s.At - t.place)
	s.At = t.place
}

func (p PauseState) movedBack(back int64) PauseState {
	p.Ends, p.forgotten = p.Ends-back, p.forgotten-back
	return p
}

func (*pause) look(s *State, t moment, _ *Limit, _ int64) (remaining, retryAfter int64) {
	if s.More == nil {
		return 0, 0
	}
	return 0, max(0, s.More.other.pause.Ends-t.now)
}

func (*pause) resetAfter(s *State, t moment, _ *Limit) int64 {
	if s.More == nil {
		return 0
	}
	return max(0, s.More.other.pause.forgotten-t.now)
}

func (*pause) charge(*State, moment, *Limit, int64, string) effect { return effect{} }

// giveBack gives nothing back, because nothing is charged.
func (*pause) giveBack(*State, int64, *Charge) (lost int64) { return 0 }

func (*pause) lasting(l *Limit, v *Verdict, _ int64) lasting {
	return lasting{answer: cmp.Or(max(0, v.RetryAfter), max(0, v.ResetAfter), math.MaxInt64), notice: l.Window}
}

// pauseLength is the length of a pause's state in Redis, without what follows about an operator.
const pauseLength = 22

// readState reads the state of a pause: see pause.lua.
func (*pause) readState(_ *Limit, text string, f *Found) error {
	if len(text) < pauseLength {
		return errReply
	}
	p := PauseState{Ends: littleEndian(text[:7]), Refusals: littleEndian(text[14:15]), forgotten: littleEndian(text[15:22]), by: text[22:]}
	if p.Ends > p.forgotten || p.forgotten >= never || len(p.by) > 511 || p.by != "" && int(p.by[0]) >= len(p.by) {
		return errReply
	}
	f.more = More{other: &other{pause: &p}}
	f.State = State{At: littleEndian(text[7:14]), More: &f.more}
	return nil
}

// ReadPause reads the state of a pause as Redis stores it. "" is that of none.
func ReadPause(text string, now int64) (PauseState, error) {
	var f Found
	if err := f.readState(&PauseLimit, text); err != nil {
		return PauseState{}, err
	}
	return f.State.PauseAt(now), nil
}

// PauseAt returns what the state of a pause says. If the clock stepped back, the pause lasts as
// long as it would have.
func (s *State) PauseAt(now int64) PauseState {
	if s.More == nil {
		return PauseState{}
	}
	if p := s.More.other.pause.movedBack(max(0, s.At-now)); p.forgotten > now {
		return p
	}
	return PauseState{}
}
