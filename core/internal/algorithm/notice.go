package algorithm

import "slices"

// MaxNoted is how many limits a notice remembers, each until it may be reported again. It takes no
// further ones before then.
const MaxNoted = 16

// notice are the limits whose threshold was reported.
type notice struct{ noted []notedLimit }

// notedLimit is a limit whose threshold was reported, and until when it is not reported again, in
// microseconds.
type notedLimit struct {
	limit string
	ends  int64
}

// Note notes in the state of a notice that a threshold of a limit was reached. It reports whether it
// must be reported, and for how long the state lives then. The script of package notices does the
// same.
func (s *State) Note(limit string, now, ends int64) (first bool, lives int64) {
	var kept []notedLimit
	if s.More != nil {
		kept = slices.Clone(s.More.notice.noted)
	}
	kept = slices.DeleteFunc(kept, func(n notedLimit) bool { return n.ends <= now })
	known := slices.ContainsFunc(kept, func(n notedLimit) bool { return n.limit == limit })
	if known || ends <= now || len(kept) == MaxNoted {
		return false, 0
	}
	kept = append(kept, notedLimit{limit, ends})
	s.More = &More{notice: &notice{kept}}
	for _, n := range kept {
		lives = max(lives, n.ends-now)
	}
	return true, lives
}
