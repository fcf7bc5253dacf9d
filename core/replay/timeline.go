package replay

import "time"

const minute = int64(time.Minute / time.Microsecond)

// minutes finds the worst minute of a rule, or of all calls together. Its calls come in the order of
// time.
type minutes struct{ present, worst minuteCount }

type minuteCount struct {
	at             int64 // in minutes since the epoch
	calls, refused int
}

// add counts a call.
func (m *minutes) add(began int64) {
	if at := began / minute; at != m.present.at {
		m.worst = m.worstSoFar()
		m.present = minuteCount{at: at}
	}
	m.present.calls++
}

// refuse counts the last call as refused.
func (m *minutes) refuse() { m.present.refused++ }

// worstSoFar returns the minute with the most refusals, or else with the most calls.
func (m *minutes) worstSoFar() minuteCount {
	a, b := m.worst, m.present
	if b.refused > a.refused || b.refused == a.refused && b.calls > a.calls {
		return b
	}
	return a
}

// timeline counts calls over the time of the logs, in at most maxColumns columns of equal width.
type timeline struct {
	minutes
	start   int64 // in microseconds since the epoch
	end     int64
	width   int64
	columns []column
	refused int
}

type column struct{ passed, refused int }

const maxColumns = 240

// add counts a call. Calls come in the order of time.
func (t *timeline) add(began int64, refused bool) {
	t.minutes.add(began)
	if t.width == 0 {
		t.start, t.width = began, widths[0]
	}
	t.end = began
	for (began-t.start)/t.width >= maxColumns {
		t.widen()
	}
	at := int((began - t.start) / t.width)
	for len(t.columns) <= at {
		t.columns = append(t.columns, column{})
	}
	if refused {
		t.refuse()
		t.refused++
		t.columns[at].refused++
	} else {
		t.columns[at].passed++
	}
}

// widths are the widths of columns, each a multiple of the one before. After a day, they double.
var widths = []int64{
	minute / 60, minute / 12, minute / 4, minute / 2, minute, 5 * minute, 15 * minute, 30 * minute, 60 * minute,
	3 * 60 * minute, 6 * 60 * minute, 12 * 60 * minute, 24 * 60 * minute,
}

// widen makes the columns as wide as the next width.
func (t *timeline) widen() {
	factor := 2
	for _, width := range widths {
		if width > t.width {
			factor = int(width / t.width)
			break
		}
	}
	t.width *= int64(factor)
	sums := t.columns[:0]
	for i, c := range t.columns {
		if i%factor == 0 {
			sums = append(sums, column{})
		}
		sums[i/factor].passed += c.passed
		sums[i/factor].refused += c.refused
	}
	t.columns = sums
}
