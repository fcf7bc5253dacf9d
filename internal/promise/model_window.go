package promise

import (
	"slices"
	"sort"

	"github.com/accesslimit/accesslimit/core"
)

// listModel models an algorithm as a list of the admitted calls, each of which counts for some
// time.
type listModel struct {
	// counts returns how long a call that was admitted at this time still counts. The result is 0
	// or less if the call no longer counts.
	counts   func(at, now int64, l core.Limit) int64
	admitted []admittedAt
	charges  int
}

type admittedAt struct {
	at      int64
	permits int
	charge  int
}

// slidingModel returns the model of a sliding window of 32 sub-windows. A call counts until the
// 33rd sub-window after its own begins. The model searches for that moment, so that it depends only
// on subWindow.
func slidingModel() model {
	return &listModel{counts: func(at, now int64, l core.Limit) int64 {
		return int64(sort.Search(2*int(l.Window.Microseconds()), func(wait int) bool {
			return subWindow(now+int64(wait), l) >= subWindow(at, l)+33
		}))
	}}
}

// subWindow returns the number, counted from the epoch, of the 32nd part of a window that contains
// a time.
func subWindow(now int64, l core.Limit) int64 { return now * 32 / l.Window.Microseconds() }

// logModel returns the model of a log, in which a call counts for a whole window.
func logModel() model {
	return &listModel{counts: func(at, now int64, l core.Limit) int64 { return at + l.Window.Microseconds() - now }}
}

func (m *listModel) ask(now int64, l core.Limit, cost int, charge bool) (p prediction) {
	counting := m.admitted[:0:0]
	used := int64(0)
	for _, a := range m.admitted {
		if m.counts(a.at, now, l) > 0 {
			counting = append(counting, a)
			used += int64(a.permits)
		}
	}
	if over := used + int64(cost) - int64(l.Max); cost > 0 && over > 0 {
		for _, a := range counting {
			if over -= int64(a.permits); over <= 0 {
				p.retry = m.counts(a.at, now, l)
				break
			}
		}
	} else if charge && cost > 0 {
		counting = append(counting, admittedAt{now, cost, m.charges})
		used += int64(cost)
		m.admitted = counting
		m.charges++
	}
	p.left = int64(l.Max) - used
	if n := len(counting); n > 0 {
		p.resetAfter = m.counts(counting[n-1].at, now, l)
	}
	return p
}

func (m *listModel) refund(_ int64, _ core.Limit, charge, permits int) {
	for i := range m.admitted {
		if a := &m.admitted[i]; a.charge == charge {
			a.permits -= permits
		}
	}
	m.admitted = slices.DeleteFunc(m.admitted, func(a admittedAt) bool { return a.permits == 0 })
}

// fixedModel is a window that begins with its first call.
type fixedModel struct {
	begin  int64
	used   int64
	begins []int64 // of each charge's window
}

func (m *fixedModel) ask(now int64, l core.Limit, cost int, charge bool) (p prediction) {
	begin, used := m.begin, m.used
	if used == 0 || now >= begin+l.Window.Microseconds() {
		begin, used = now, 0
	}
	rest := begin + l.Window.Microseconds() - now
	if cost > 0 && used+int64(cost) > int64(l.Max) {
		p.retry = rest
	} else if charge && cost > 0 {
		used += int64(cost)
		m.begin, m.used = begin, used
		m.begins = append(m.begins, begin)
	}
	p.left = int64(l.Max) - used
	if used > 0 {
		p.resetAfter = rest
	}
	return p
}

func (m *fixedModel) refund(_ int64, _ core.Limit, charge, permits int) {
	if m.begins[charge] == m.begin {
		m.used -= int64(permits)
	}
}

// alignedModel holds the number of permits charged in each window of the calendar, by the window's
// number since the epoch.
type alignedModel struct {
	admitted map[int64]int64
	numbers  []int64 // of each charge's window
}

func (m *alignedModel) ask(now int64, l core.Limit, cost int, charge bool) (p prediction) {
	window := l.Window.Microseconds()
	number := now / window
	rest := (number+1)*window - now
	switch {
	case cost > 0 && m.admitted[number]+int64(cost) > int64(l.Max):
		p.retry = rest
	case charge && cost > 0:
		if m.admitted == nil {
			m.admitted = make(map[int64]int64)
		}
		m.admitted[number] += int64(cost)
		m.numbers = append(m.numbers, number)
	}
	p.left = int64(l.Max) - m.admitted[number]
	if m.admitted[number] > 0 {
		p.resetAfter = rest
	}
	return p
}

func (m *alignedModel) refund(_ int64, _ core.Limit, charge, permits int) {
	m.admitted[m.numbers[charge]] -= int64(permits)
}
