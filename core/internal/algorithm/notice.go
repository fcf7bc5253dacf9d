package algorithm

import "slices"

// MaxNoted is how many limits a notice remembers. Each is remembered until it may be reported
// again; meanwhile, a full notice accepts no other limit.
const MaxNoted = 16

// notedLimit is a limit whose threshold was reported, and until when it is not reported again, in
// microseconds.
type notedLimit struct {
	limit string
	ends  int64
}

// Note records in the state of a notice that a limit reached a threshold. It reports whether this
// is new and must be reported, and for how long the state lives. The script of package notices does
// the same.
func (s *State) Note(limit string, now, ends int64) (first bool, lives int64) {
	var kept []notedLimit
	if s.More != nil {
		kept = slices.Clone(s.More.other.noted)
	}
	kept = slices.DeleteFunc(kept, func(n notedLimit) bool { return n.ends <= now })
	known := slices.ContainsFunc(kept, func(n notedLimit) bool { return n.limit == limit })
	if known || ends <= now || len(kept) == MaxNoted {
		return false, 0
	}
	kept = append(kept, notedLimit{limit, ends})
	s.More = &More{other: &other{noted: kept}}
	for _, n := range kept {
		lives = max(lives, n.ends-now)
	}
	return true, lives
}
