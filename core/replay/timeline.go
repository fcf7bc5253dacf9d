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

func (m *minutes) add(began int64, refused bool) {
	if at := began / minute; at != m.present.at {
		m.worst = m.worstSoFar()
		m.present = minuteCount{at: at}
	}
	m.present.calls++
	if refused {
		m.present.refused++
	}
}

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
	t.minutes.add(began, refused)
	if t.width == 0 {
		t.start, t.width = began, int64(time.Second/time.Microsecond)
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
		t.refused++
		t.columns[at].refused++
	} else {
		t.columns[at].passed++
	}
}

// widen makes each two columns one.
func (t *timeline) widen() {
	t.width *= 2
	half := t.columns[:0]
	for i := 0; i < len(t.columns); i += 2 {
		sum := t.columns[i]
		if i+1 < len(t.columns) {
			sum.passed += t.columns[i+1].passed
			sum.refused += t.columns[i+1].refused
		}
		half = append(half, sum)
	}
	t.columns = half
}
