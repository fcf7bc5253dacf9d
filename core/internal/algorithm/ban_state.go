package algorithm

import (
	"errors"
	"math"
)

// BanState is what a ban's state says about a subject. Times are in microseconds since the epoch.
type BanState struct {
	Ends int64 // when the ban ends; it is not in force from then on
	Bans int64 // how often the subject was banned so far, except by hand

	strikes, struck int64 // strikes in a row since then, and the time of the last one
}

// errNoBan is the error of a string that is not the state of a ban.
var errNoBan = errors.New("is not the state of a ban")

// banStateLength is the length of a ban's state in Redis.
const banStateLength = 24

// ReadBan reads the state of a ban as ban.lua writes it. If the clock stepped back, the ban lasts
// as long as it would have.
func ReadBan(state string, now int64) (BanState, error) {
	if len(state) != banStateLength {
		return BanState{}, errNoBan
	}
	ends, last, bans, forgotten := littleEndian(state[:7]), littleEndian(state[7:14]), int64(state[16]), littleEndian(state[17:])
	strikes := littleEndian(state[14:16])
	if last >= never || ends > forgotten || forgotten >= never {
		return BanState{}, errNoBan
	}
	back := max(0, last-now)
	return banStateAt(BanState{max(0, ends-back), bans, strikes, last - back}, max(0, forgotten-back), now), nil
}

// BanAt returns what the state of a ban says.
func (s *State) BanAt(now int64) BanState {
	if s.More == nil || s.More.ban == nil {
		return BanState{}
	}
	h, back := s.More.ban, max(0, s.At-now)
	return banStateAt(BanState{h.ends - back, h.bans, h.strikes, s.At - back}, h.forgotten-back, now)
}

func banStateAt(b BanState, forgotten, now int64) BanState {
	if forgotten <= now {
		return BanState{}
	}
	return b
}

// Strikes returns how many strikes in a row precede the next one, under the limit of a ban.
func (b *BanState) Strikes(l *Limit, now int64) int64 {
	if now/l.Window-b.struck/l.Window > 1 {
		return 0
	}
	return b.strikes
}

// Begins returns how long a ban would hold if a refusal now began it, or 0 if the refusal would not
// begin a ban.
func (b *BanState) Begins(l *Limit, now int64) (holds int64) {
	if l.ban.after == 0 {
		return 0
	}
	s := State{At: b.struck, More: &More{ban: &banHistory{ends: b.Ends, bans: b.Bans, strikes: b.strikes, forgotten: math.MaxInt64}}}
	holds, _, _ = l.Strike(&s, now)
	return holds
}

// BanNote is a note about a ban by hand, kept beside the ban.
type BanNote struct {
	Ends         int64  // when the ban ends; the note is only about the ban with this end
	Author, Note string // of at most 255 bytes each
}

// Append appends the stored form.
func (n *BanNote) Append(dst []byte) []byte {
	dst = append(append(appendNumber(dst, n.Ends), byte(len(n.Author))), n.Author...)
	return append(append(dst, byte(len(n.Note))), n.Note...)
}

// ReadBanNote reads the stored form. ok is false if the text is not a note.
func ReadBanNote(text string) (n BanNote, ok bool) {
	if len(text) < 7 {
		return n, false
	}
	n.Ends = littleEndian(text[:7])
	rest := text[7:]
	ok = cutText(&n.Author, &rest, 1) && cutText(&n.Note, &rest, 1) && rest == ""
	return n, ok
}
