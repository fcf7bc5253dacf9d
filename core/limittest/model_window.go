package limittest

import (
	"sort"

	"github.com/accesslimit/accesslimit/core"
)

// slidingModel is an aggregated sliding window: a list of what was admitted and when, in which only the 32nd part of the
// window counts as a time.
type slidingModel struct {
	admitted []admittedIn
}

type admittedIn struct {
	subWindow int64
	permits   int
}

// subWindow is the number of the 32nd part of a window that a time lies in, counted from the epoch.
func subWindow(now int64, l core.Limit) int64 { return now * 32 / l.Window.Microseconds() }

// freeAgain is how long until a sub-window's permits no longer count: the first moment of the 33rd one after it. It is found
// by trying, so that it follows from subWindow alone.
func freeAgain(sub, now int64, l core.Limit) int64 {
	return int64(sort.Search(2*int(l.Window.Microseconds()), func(wait int) bool {
		return subWindow(now+int64(wait), l) >= sub+33
	}))
}

func (m *slidingModel) ask(now int64, l core.Limit, cost int, charge bool) (p prediction) {
	current := subWindow(now, l)
	counting := m.admitted[:0:0]
	used := 0
	for _, a := range m.admitted {
		if a.subWindow+33 > current {
			counting = append(counting, a)
			used += a.permits
		}
	}
	if over := used + cost - l.Max; cost > 0 && over > 0 {
		for _, a := range counting {
			if over -= a.permits; over <= 0 {
				p.retry = freeAgain(a.subWindow, now, l)
				break
			}
		}
	} else if charge && cost > 0 {
		counting = append(counting, admittedIn{current, cost})
		used += cost
		m.admitted = counting
	}
	p.left = l.Max - used
	if n := len(counting); n > 0 {
		p.resetAfter = freeAgain(counting[n-1].subWindow, now, l)
	}
	return p
}

// fixedModel is a window that begins with its first call.
type fixedModel struct {
	begin int64
	used  int
}

func (m *fixedModel) ask(now int64, l core.Limit, cost int, charge bool) (p prediction) {
	begin, used := m.begin, m.used
	if used == 0 || now >= begin+l.Window.Microseconds() {
		begin, used = now, 0
	}
	rest := begin + l.Window.Microseconds() - now
	if cost > 0 && used+cost > l.Max {
		p.retry = rest
	} else if charge && cost > 0 {
		used += cost
		m.begin, m.used = begin, used
	}
	p.left = l.Max - used
	if used > 0 {
		p.resetAfter = rest
	}
	return p
}
