package accesslog

// Merged yields the calls of several logs in the order in which they began.
type Merged struct {
	logs []*ordered // those that have further calls, as a heap
	all  []*ordered
	last *ordered // yielded last, and to be moved
}

// Merge merges logs. Unless lax is set, a log ends with ErrOrder as soon as it is certain that it
// is not in order of time.
func Merge(logs []*Log, lax bool) *Merged {
	m := new(Merged)
	for _, l := range logs {
		o := newOrdered(l, lax)
		m.all = append(m.all, o)
		if o.peek() != nil {
			m.logs = append(m.logs, o)
		}
	}
	for i := len(m.logs)/2 - 1; i >= 0; i-- {
		m.sink(i)
	}
	return m
}

// Next returns the next call, which is valid until Next is called again, or nil at the end.
func (m *Merged) Next() *Call {
	if m.last != nil {
		m.last.take()
		if m.last.peek() == nil {
			m.logs[0] = m.logs[len(m.logs)-1]
			m.logs = m.logs[:len(m.logs)-1]
		}
		m.sink(0)
	}
	if len(m.logs) == 0 {
		m.last = nil
		return nil
	}
	m.last = m.logs[0]
	return m.last.peek()
}

// sink moves an entry down to its place in the heap.
func (m *Merged) sink(i int) {
	for {
		first := i
		for child := 2*i + 1; child <= 2*i+2 && child < len(m.logs); child++ {
			if m.logs[child].peek().Began < m.logs[first].peek().Began {
				first = child
			}
		}
		if first == i {
			return
		}
		m.logs[i], m.logs[first] = m.logs[first], m.logs[i]
		i = first
	}
}

// Steps returns where the clocks of the logs went back.
func (m *Merged) Steps() (steps []Step) {
	for _, o := range m.all {
		steps = append(steps, o.steps...)
	}
	return steps
}

// Errs returns an error for each log that ended early or is not in order of time, and nil for the
// others.
func (m *Merged) Errs() []error {
	errs := make([]error, len(m.all))
	for i, o := range m.all {
		errs[i] = o.err()
	}
	return errs
}

// Unit returns the coarsest unit of the logs' times, in microseconds.
func (m *Merged) Unit() (unit int64) {
	for _, o := range m.all {
		if o.log.format.parser != nil {
			unit = max(unit, o.log.Unit())
		}
	}
	return unit
}
