package algorithm

import (
	"slices"
	"sort"
)

type slidingLog struct{}

func (slidingLog) tag() string { return "sl1" }

func (slidingLog) place(now int64, _ *Limit) int64 { return now }

// anchor keeps what counted when the newest entry was made, all of it as made now.
func (slidingLog) anchor(s *State, place int64, l *Limit) {
	s.Entries = s.Entries[s.firstLive(s.At, l.Window):]
	for i := range s.Entries {
		s.Entries[i].At = place
	}
	s.At = place
}

// firstLive is the place of the first entry that still counts: each does until a whole window later.
func (s *State) firstLive(now, window int64) int {
	return sort.Search(len(s.Entries), func(i int) bool { return s.Entries[i].At > now-window })
}

func (slidingLog) look(s *State, now int64, l *Limit, cost int64) Verdict {
	live := s.Entries[s.firstLive(now, l.Window):]
	if len(live) == 0 {
		return (&Verdict{Remaining: l.Max}).missing(cost-l.Max, l.Window)
	}
	newest, before := live[len(live)-1], live[0].Sum-live[0].Cost
	used := newest.Sum - before
	v := Verdict{Remaining: l.Max - used, ResetAfter: newest.At + l.Window - now}
	missing := used + cost - l.Max
	freeing := sort.Search(len(live), func(i int) bool { return live[i].Sum-before >= missing })
	if freeing == len(live) {
		return v.missing(missing, l.Window)
	}
	return v.missing(missing, live[freeing].At+l.Window-now)
}

// missing is the verdict when so many permits are missing, which takes so long.
func (v *Verdict) missing(permits, wait int64) Verdict {
	if permits > 0 {
		v.RetryAfter = wait
	}
	return *v
}

func (slidingLog) charge(s *State, now int64, l *Limit, cost int64, note string) int64 {
	sum := cost
	if s.Entries = s.Entries[s.firstLive(now, l.Window):]; len(s.Entries) > 0 {
		sum += s.Entries[len(s.Entries)-1].Sum
	}
	s.Entries = append(s.Entries, Entry{At: now, Cost: cost, Sum: sum, Mark: note})
	s.At = now
	return l.Window
}

// giveBack takes the permits from the newest entry of that moment that has them.
func (slidingLog) giveBack(s *State, _ int64, c *Charge) {
	for i := len(s.Entries) - 1; i >= 0 && s.Entries[i].At >= c.At; i-- {
		if s.Entries[i].At != c.At || s.Entries[i].Cost < c.Cost || s.Entries[i].Mark != c.Mark {
			continue
		}
		s.Entries[i].Cost -= c.Cost
		for later := i; later < len(s.Entries); later++ {
			s.Entries[later].Sum -= c.Cost
		}
		if s.Entries[i].Cost == 0 {
			s.Entries = slices.Delete(s.Entries, i, i+1)
			s.toNewest()
		}
		return
	}
}

// toNewest places the state by its newest entry, after another was taken from it.
func (s *State) toNewest() {
	s.At = 0
	if n := len(s.Entries); n > 0 {
		s.At = s.Entries[n-1].At
	}
}

// Records are the calls that count now, newest first. None is told to have come later than now, where the clock stepped back.
func (l *Limit) Records(s *State, now int64) []Record {
	live := s.Entries[s.firstLive(max(s.At, now), l.Window):]
	records := make([]Record, len(live))
	for i, e := range live {
		records[len(live)-1-i] = Record{At: min(e.At, now), Cost: e.Cost, Note: e.Mark}
	}
	return records
}
