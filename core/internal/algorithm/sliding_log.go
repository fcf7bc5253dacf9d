package algorithm

import (
	"slices"
	"sort"
)

type slidingLog struct{ defaults }

func (*slidingLog) properties() Properties {
	return Properties{
		Name: "SlidingLog", Text: "log", File: "sliding_log", Tag: "sl3", MaxPermits: MaxEntries, Exact: true, Remembers: true,
	}
}

func (*slidingLog) limit(t *Terms) (Limit, error) { return inWindows(SlidingLog, t) }

func (*slidingLog) place(now int64, _ *Limit) int64 { return now }

// The entries of a log have the times of its own clock: see sliding_log.lua. State.At is by the other
// one: when the newest entry was made.

// anchor lets the log's clock stand still.
func (*slidingLog) anchor(s *State, t moment, _ *Limit) {
	s.More.log.shift += s.At - t.place
	s.At = t.place
}

// ownTime returns the time by the log's clock.
func (s *State) ownTime(now int64) int64 {
	if s.More == nil {
		return now
	}
	return max(now, s.At) + s.More.log.shift
}

func (*slidingLog) look(s *State, t moment, l *Limit, cost int64) (remaining, retryAfter int64) {
	return s.lookAt(s.ownTime(t.now), l, cost)
}

func (*slidingLog) resetAfter(s *State, t moment, l *Limit) int64 {
	return s.entriesLast(s.ownTime(t.now), l.Window)
}

func (*slidingLog) charge(s *State, t moment, l *Limit, cost int64, note string) effect {
	now := s.ownTime(t.now)
	live := s.liveAt(now, l.Window)
	e := Entry{At: now, Cost: cost, Sum: cost, Position: now + cost, Mark: note}
	if len(live) > 0 {
		newest := &live[len(live)-1]
		e.Sum, e.Position = newest.Sum+cost, max(newest.Position+1, now)+cost
	} else if s.More != nil {
		s.More.log.shift, e.At, e.Position = 0, t.now, t.now+cost
	}
	s.keep(append(live, e))
	s.At = t.now
	return effect{resetAfter: l.Window, position: e.Position}
}

// giveBack removes the permits from the entry with the charge's position and time, as far as it
// still holds them. Adding up 10,000 later entries again takes 10 µs.
func (d *slidingLog) giveBack(s *State, now int64, c *Charge) (lost int64) {
	entries, t := s.entries(), s.ownTime(now)
	i := sort.Search(len(entries), func(i int) bool { return entries[i].Position >= c.Position })
	if i == len(entries) || entries[i].Position != c.Position || entries[i].At <= t-c.Limit.Window {
		return 0
	}
	if e := &entries[i]; e.At != c.At && e.At != c.At+s.More.log.shift {
		return 0
	}
	if s.At > now {
		d.anchor(s, moment{now, now}, c.Limit)
	}
	back := min(c.Cost, entries[i].Cost)
	entries[i].Cost -= back
	for later := i; later < len(entries); later++ {
		entries[later].Sum -= back
	}
	if entries[i].Cost == 0 {
		s.keep(slices.Delete(entries, i, i+1))
		s.toNewest()
	}
	return 0
}

// lasting: the verdict does not say when the first permit of other calls comes back.
func (*slidingLog) lasting(l *Limit, v *Verdict, cost int64) (of lasting) {
	of.notice = l.Window
	if ends, before := l.steadyUntil(v, cost); before <= 0 {
		of.answer = ends
	}
	switch {
	case v.ResetAfter == 0:
		of.permit = l.Window
	case l.onlyUse(v):
		of.permit = v.ResetAfter
	}
	return of
}

func (*slidingLog) records(l *Limit, s *State, now int64) []Record {
	t := s.ownTime(now)
	live := s.liveAt(t, l.Window)
	records := make([]Record, len(live))
	for i, e := range live {
		records[len(live)-1-i] = Record{At: e.At + now - t, Cost: e.Cost, Note: e.Mark}
	}
	return records
}

// readState reads what the script found before it charged.
func (*slidingLog) readState(l *Limit, text string, f *Found) error {
	if len(text) != 5*7 {
		return errReply
	}
	shift, used, newest, number, freeing := littleEndian(text[:7]), littleEndian(text[7:14]), littleEndian(text[14:21]), littleEndian(text[21:28]), littleEndian(text[28:])
	if freeing > newest || newest > f.now+shift {
		return errReply
	}
	f.found(used, newest, freeing, used+f.unit-l.Max, shift).Position = number
	return nil
}
