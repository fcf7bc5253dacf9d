package algorithm

// Calls on different counters that are made together are decided by one script, decide_many.lua.
// Each is decided by itself. Calls of one form stand together in its arguments: their counters have
// the same limits and costs, in the same order.

// Joins reports whether a call that charges these counters can be decided by decide_many.lua.
func Joins(counters []Counter) bool {
	for i := range counters {
		if !counters[i].Merges() || counters[i].Limit.FastScript() == nil {
			return false
		}
	}
	return true
}

// SameForm reports whether two calls have one form.
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

// AppendForm appends what decide_many.lua takes for a number of calls of one form, each of which
// stands for so many equal ones.
func AppendForm(argv []any, counters []Counter, equal int64, calls int) []any {
	argv = append(argv, calls, len(counters))
	for i := range counters {
		c := &counters[i]
		argv = append(argv, c.Limit.tag, c.Limit.FastArg(c.Cost, equal))
	}
	return argv
}

// ReadMany reads what decide_many.lua replied for the counters of one call that stands for so many
// equal ones.
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
