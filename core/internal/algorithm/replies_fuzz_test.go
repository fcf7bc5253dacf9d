package algorithm_test

import (
	"testing"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
)

// texts makes a reply out of bytes: for each element its length, and the bytes. With a length above 250 it is
// the time, or a number.
func texts(bytes []byte) (reply []string) {
	for len(bytes) > 0 && len(reply) < 20 {
		n := int(bytes[0])
		bytes = bytes[1:]
		switch {
		case n == 255:
			reply = append(reply, "1800000000000000")
		case n > 250:
			reply = append(reply, []string{"0", "1", "-1", "-2"}[n-251])
		default:
			n = min(n, len(bytes))
			reply, bytes = append(reply, string(bytes[:n])), bytes[n:]
		}
	}
	return reply
}

// FuzzReplies reads replies that no script of ours returns, as from a proxy or a server that is broken.
// Reading never panics. A reply that is accepted lets no more calls pass than were asked for, and leaves no
// more permits than there are.
func FuzzReplies(f *testing.F) {
	const now = "\x00\x40\x66\x52\x17\x65\x06"
	const two = "\x80\x84\x1e\x00\x00\x00\x00" // units of two permits
	states := []string{
		"", "\x0d" + now + "\x02\x00\x00\x00\x00\x00", "\x14" + now + "\x02\x00\x00\x00\x00\x00" + now,
		"\x27" + now + two + "\x40\x42\x0f\x00\x00\x00" + "\x07\x00\x00\x00\x00" + now + now,
		"\x1a" + "\x00\x00\x00\x58\x1a\x00\x00" + "\x02\x00\x00\x00\x00\x00\x02\x00\x00\x00\x00\x00" + now,
		"\x15\x02\x00\x00\x00\x00\x00\x00" + now + "\x00\x00\x00\x00\x00\x00\x00",
		"\x23\x00\x00\x00\x00\x00\x00\x00\x02\x00\x00\x00\x00\x00\x00" + now + now + "\x00\x00\x00\x00\x00\x00\x00",
	}
	for kind := range byte(8) {
		for form := range byte(9) {
			for _, state := range states {
				for _, number := range []string{"\xfb", "\xfc", "\xfd", "\xfe", "\x013", "\x0299"} {
					f.Add(form, kind, byte(2), byte(1), []byte("\xff"+number+state+number+state))
				}
				f.Add(form, kind, byte(0), byte(0), []byte("\xff\x0f"+now+"\x00\x01\x00\x00\x00\x00\x00\x00"+state))
			}
		}
	}
	limits := oneOfEach(f)
	f.Fuzz(func(t *testing.T, form, kind, calls, ahead byte, bytes []byte) {
		limit, reply := &limits[int(kind)%len(limits)], texts(bytes)
		this := algorithm.Counter{Key: []byte("a"), Limit: limit, Cost: 1 + int64(kind)/16%7, Mark: "mark"}
		window := algorithm.Windowed(algorithm.FixedWindow, 7, second)
		other := algorithm.Counter{Key: []byte("b"), Limit: &window, Cost: 1}
		given := algorithm.Verdict{At: early, Taken: 1}
		change := func(c algorithm.Change) {
			if err := c.Read(reply); err == nil && (c.Lost < 0 || c.Kind == algorithm.Pauses && c.Paused.Lasts < second) {
				t.Errorf("%q: %+v", reply, c)
			}
		}
		op := algorithm.Op{Mode: algorithm.Mode(form % 5), Counters: []algorithm.Counter{this}, Calls: 1, Share: 1, Patience: second}
		switch form % 9 {
		case 0:
			op.Counters = append(op.Counters, other)
		case 5:
			bill := algorithm.Bill{Key: []byte("bill"), Share: 1, Charges: []algorithm.Charge{other.Charged(&given)}}
			change(algorithm.Change{Kind: algorithm.ChangesBill, Bill: &bill, To: algorithm.BillChange{Settle: calls%2 == 0, Permits: int64(ahead)}})
			return
		case 6:
			change(algorithm.Change{Charges: []algorithm.Charge{this.Charged(&given), other.Charged(&given)}})
			return
		case 7:
			change(algorithm.Change{Kind: algorithm.Pauses, Key: []byte("a"), Pause: &algorithm.Pause{Span: second, Longest: hour}})
			return
		case 8:
			if records, err := algorithm.ReadRecords(reply); err == nil && 3*len(records) != len(reply) {
				t.Errorf("%q: %v", reply, records)
			}
			return
		}
		if op.Mode == algorithm.InTurn && !limit.Properties().Reserves || op.Mode == algorithm.InDebt && !limit.Properties().Debts {
			return
		}
		now, err := algorithm.ReadTime(reply)
		if err != nil {
			return
		}
		verdicts := make([]algorithm.Verdict, len(op.Counters))
		passed, err := op.Read(reply[1:], now, int64(ahead), 1+int64(calls), verdicts, make([]algorithm.Found, len(op.Counters)))
		v := verdicts[0]
		if err == nil && (passed < 0 || passed > max(1, this.Cost) || v.Remaining > limit.Max || v.RetryAfter < 0 || v.ResetAfter < 0 || v.Taken > this.Cost) {
			t.Errorf("%q: %d passed, %+v", reply, passed, v)
		}
	})
}
