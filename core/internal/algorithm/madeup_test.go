package algorithm

import "os"

// QuietPeriod is a made-up algorithm, which only tests have: all permits come back when nothing was
// charged for a window. It defines only what an algorithm must, so the tests that run on all
// algorithms also show that the defaults are safe.
const QuietPeriod = Ban + 1

func init() { registry[QuietPeriod] = register(new(quietPeriod), os.DirFS("testdata")) }

type quietPeriod struct{ defaults }

func (*quietPeriod) properties() Properties {
	return Properties{Name: "QuietPeriod", Text: "quiet", File: "quiet_period", Tag: "qp1"}
}

func (*quietPeriod) limit(t *Terms) (Limit, error) { return inWindows(QuietPeriod, t) }

func (*quietPeriod) place(now int64, _ *Limit) int64 { return now }

func (*quietPeriod) anchor(s *State, t moment, _ *Limit) { s.At = t.place }

func (*quietPeriod) look(s *State, t moment, l *Limit, cost int64) (remaining, retryAfter int64) {
	used := s.Used
	if t.now-s.At >= l.Window {
		used = 0
	}
	if used+cost > l.Max {
		retryAfter = s.At + l.Window - t.now
	}
	return l.Max - used, retryAfter
}

func (*quietPeriod) resetAfter(s *State, t moment, l *Limit) int64 {
	if s.Used == 0 {
		return 0
	}
	return max(0, s.At+l.Window-t.now)
}

func (*quietPeriod) charge(s *State, t moment, l *Limit, cost int64, _ string) effect {
	if t.now-s.At >= l.Window {
		s.Used = 0
	}
	s.At, s.Used = t.now, s.Used+cost
	return effect{resetAfter: l.Window}
}
