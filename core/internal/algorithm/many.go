package algorithm

// One script, decide_many.lua, decides calls on different counters that are made at the same time,
// each independently. Two calls have the same form if their counters have the same limits and
// costs, in the same order. Calls of one form are grouped in the script's arguments.

// Joins reports whether a call that charges these counters can be decided by decide_many.lua.
// Counters whose states are not strings do not qualify, because reading them can fail.
func Joins(counters []Counter) bool {
	for i := range counters {
		if !counters[i].Merges() || counters[i].Limit.FastScript() == nil {
			return false
		}
	}
	return true
}

// SameForm reports whether two calls have the same form.
func SameForm(a, b []Counter) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i].Cost != b[i].Cost || !a[i].Limit.Equal(b[i].Limit) {
			return false
		}
	}
	return true
}

// AppendForm appends the arguments of decide_many.lua for the given number of calls of one form.
// Each call stands for the given number of equal calls.
func AppendForm(argv []any, counters []Counter, equal int64, calls int) []any {
	argv = append(argv, calls, len(counters))
	for i := range counters {
		c := &counters[i]
		argv = append(argv, c.Limit.tag, c.Limit.FastArg(c.Cost, equal))
	}
	return argv
}

// ReadMany reads the reply of decide_many.lua for the counters of one call. The call stands for the
// given number of equal calls.
func ReadMany(replies []string, counters []Counter, equal int64, found []Found) error {
	if len(counters) == 1 {
		return counters[0].Limit.ReadFast(replies[0], counters[0].Cost, equal, &found[0])
	}
	for i := range counters {
		if len(replies[i]) < 7 {
			return errReply
		}
		if found[i].Now = littleEndian(replies[i][:7]); found[i].Now == 0 {
			return errReply
		}
		if err := counters[i].Limit.ReadState(replies[i][7:], &found[i]); err != nil {
			return err
		}
	}
	return nil
}
