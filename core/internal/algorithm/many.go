package algorithm

// One script decides calls on different counters that are made at the same time, each independently. Two
// calls have the same form if their counters have the same limits and costs, in the same order. Calls of
// one form are grouped in the script's arguments.

// Joins reports whether an op can be decided by a script with others. It must not fail once another one is
// written, as a write to a sorted set can without a right for it.
func (o *Op) Joins() bool {
	for i := range o.Counters {
		if !o.Counters[i].Merges() {
			return false
		}
	}
	return o.Mode == AllOrNone && o.Recorded() == nil
}

// SameForm reports whether two calls have the same form.
func SameForm(a, b []Counter) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i].Cost != b[i].Cost || a[i].Mark != b[i].Mark || !a[i].Limit.Equal(b[i].Limit) {
			return false
		}
	}
	return true
}

// AppendForm appends the arguments of decide.lua for the given number of ops of one form, of which this is
// one. at is about now, in microseconds.
func (o *Op) AppendForm(argv []any, ops int, at int64) []any {
	argv = append(argv, header(ops, len(o.Counters), ofItsOwn, false))
	for i := range o.Counters {
		argv = o.appendCounter(argv, &o.Counters[i], at)
	}
	return argv
}
