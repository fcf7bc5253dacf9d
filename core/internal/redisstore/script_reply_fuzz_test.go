package redisstore_test

import (
	"encoding/binary"
	"fmt"
	"testing"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
	"github.com/accesslimit/accesslimit/core/internal/redisstore"
)

// replyReader makes any reply that Redis can return out of bytes: a kind, then the value.
type replyReader struct{ rest []byte }

func (r *replyReader) byte() (b byte) {
	if len(r.rest) > 0 {
		b, r.rest = r.rest[0], r.rest[1:]
	}
	return b
}

func (r *replyReader) take(n int) (taken []byte) {
	n = min(n, len(r.rest))
	taken, r.rest = r.rest[:n], r.rest[n:]
	return taken
}

func (r *replyReader) reply(depth int) any {
	switch kind := r.byte(); kind % 9 {
	case 0, 1, 2:
		var n int64
		for _, b := range r.take(8) {
			n = n<<8 | int64(b)
		}
		return n
	case 3, 4:
		return string(r.take(int(r.byte())))
	case 5:
		return nil
	case 6:
		return 1.5
	case 7:
		return true
	default:
		list := []any{}
		for range r.byte() % 16 {
			if depth < 3 && len(r.rest) > 0 {
				list = append(list, r.reply(depth+1))
			}
		}
		return list
	}
}

// list returns a reply that is a list.
func (r *replyReader) list() (list []any) {
	for len(r.rest) > 0 && len(list) < 64 {
		list = append(list, r.reply(0))
	}
	return list
}

// texts returns so many strings or integers, as go-redis reads them.
func (r *replyReader) texts(n int) (texts []string) {
	for len(texts) < n {
		switch value := r.reply(3).(type) {
		case string:
			texts = append(texts, value)
		case int64:
			texts = append(texts, fmt.Sprint(value))
		default:
			texts = append(texts, "")
		}
	}
	return texts
}

// asBytes returns bytes from which list makes these integers and strings.
func asBytes(values ...any) (bytes []byte) {
	for _, value := range values {
		switch value := value.(type) {
		case int:
			bytes = binary.BigEndian.AppendUint64(append(bytes, 0), uint64(value))
		case int64:
			bytes = binary.BigEndian.AppendUint64(append(bytes, 0), uint64(value))
		case string:
			bytes = append(append(bytes, 3, byte(len(value))), value...)
		}
	}
	return bytes
}

// FuzzReplies reads replies that no script of ours returns, as from a proxy or a server that is
// broken. Reading never panics. A reply of a wrong form is an error. A reply that is accepted lets
// no more calls pass than were asked for, and leaves no more permits than there are.
func FuzzReplies(f *testing.F) {
	addReplies(f)
	of := limits(f, 7)
	kinds := []*algorithm.Limit{of["sliding window"], of["fixed window"], of["bucket"], new(algorithm.Windowed(algorithm.CalendarWindow, 7, 1_000_000))}
	f.Fuzz(func(t *testing.T, form, kind, calls, behind byte, bytes []byte) {
		counters := []algorithm.Counter{{Key: []byte("test:{a}:b"), Limit: kinds[int(kind)%len(kinds)], Cost: 1 + int64(kind)/16%7}}
		if form%7 == 6 {
			counters = append(counters, algorithm.Counter{Key: []byte("test:{a}:c"), Limit: kinds[1], Cost: 1})
		}
		asked := redisstore.Reply{Counters: counters, Calls: 1 + int64(calls), Ahead: int64(behind)}
		readReply(t, form%7, asked, bytes)
	})
}

// addReplies adds replies of every form, right and wrong ones.
func addReplies(f *testing.F) {
	const now int64 = 1_800_000_000_000_000
	const window = "\x00\x40\x66\x52\x17\x65\x06"
	const used = "\x80\x84\x1e\x00\x00\x00\x00" // two permits
	const bucket = window + used + "\x40\x42\x0f\x00\x00\x00" + "\x07\x00\x00\x00\x00" + window + window
	for form := range byte(7) {
		for _, text := range []string{
			"", "-1", "0", "7", "99999999999999999999", window, window + "\x01\x00\x00\x00\x00\x00", window + window + "\x01\x00\x00\x00\x00\x00",
			window + window + "\x01\x00\x00\x00\x00\x00\x01\x00\x00\x00\x00\x00", bucket, bucket[:21], bucket + "\x00", window + bucket, "hello, world, this is text",
		} {
			for kind := range byte(4) {
				f.Add(byte(0), kind, byte(2), byte(1), []byte(text))
				f.Add(byte(5), kind, byte(2), byte(1), asBytes(text))
				f.Add(byte(6), kind, byte(2), byte(1), asBytes(window+text, window+text))
				f.Add(byte(6), kind, byte(2), byte(1), asBytes("\x00\x00\x00\x00\x00\x00\x00"+text, window+text))
				f.Add(byte(6), kind, byte(2), byte(1), asBytes(window+text, window+window+"\x01\x00\x00\x00\x00\x00"))
			}
			f.Add(form, byte(1), byte(3), byte(0), asBytes(now, text))
			f.Add(form, byte(2), byte(200), byte(3), asBytes(now, text, text))
			f.Add(form, byte(3), byte(2), byte(0), asBytes(now, 1, text))
		}
		f.Add(form, byte(0), byte(1), byte(0), asBytes(now, 0, 6, 1_000_000, 1))
		f.Add(form, byte(1), byte(1), byte(0), asBytes(now, -1, 6, 1_000_000, 0))
		f.Add(form, byte(2), byte(1), byte(0), asBytes(now, 0, 6, 1_000_000, 5, 2))
		f.Add(form, byte(3), byte(1), byte(0), asBytes(now, 2, "note", now, 1, ""))
	}
}

// readReply reads bytes as a reply of a form, and checks what is found there.
func readReply(t *testing.T, form byte, asked redisstore.Reply, bytes []byte) {
	reader := &replyReader{bytes}
	verdicts := make([]algorithm.Verdict, len(asked.Counters))
	switch form {
	case 0:
		if asked.Counters[0].Limit.FastScript() == nil {
			return
		}
		asked.Text = string(bytes)
		passed, err := asked.Fast(verdicts)
		wantWithin(t, asked, passed, err, verdicts)
		wantForm(t, "fast", err, fastForm(asked.Counters[0].Limit, asked.Text, asked.Calls*asked.Counters[0].Cost))
	case 1:
		asked.Values = reader.list()
		passed, err := asked.Equal(verdicts)
		wantWithin(t, asked, passed, err, verdicts)
		wantForm(t, "equal", err, equalForm(asked.Counters[0].Limit, asked.Values))
	case 2:
		asked.Values = reader.list()
		_, err := asked.Decided(verdicts)
		wantForm(t, "decided", err, integers(asked.Values, 5))
		v := verdicts[0]
		if err == nil && fmt.Sprint(v.At, v.RetryAfter, v.Remaining, v.ResetAfter, v.Position) != fmt.Sprint(asked.Values[:5]...) {
			t.Errorf("%v is read as %+v", asked.Values, v)
		}
	case 3:
		records, err := algorithm.ReadRecords(reader.list())
		if err == nil && records == nil {
			t.Error("neither records nor an error")
		}
	case 4:
		reply := reader.list()
		_, err := algorithm.ReadReserved(reply, &algorithm.Counter{})
		wantForm(t, "reservation", err, integers(reply, 6))
	case 5, 6: // of one counter, or two
		if !algorithm.Joins(asked.Counters) {
			return
		}
		asked.Texts = reader.texts(len(asked.Counters))
		passed, err := asked.Many(verdicts)
		wantWithin(t, asked, passed, err, verdicts)
		wantForm(t, "many", err, manyForm(asked))
	}
}

// wantForm checks that a reply is an error if, and only if, it has a wrong form.
func wantForm(t *testing.T, what string, err error, right bool) {
	t.Helper()
	if (err == nil) != right {
		t.Errorf("%s: of the right form %v, and the error is %v", what, right, err)
	}
}

// wantWithin checks the verdict and the number of calls that a reply was read as.
func wantWithin(t *testing.T, asked redisstore.Reply, passed int64, err error, verdicts []algorithm.Verdict) {
	t.Helper()
	if err != nil {
		return
	}
	v, l := verdicts[0], asked.Counters[0].Limit
	if passed < 0 || passed > 1 || v.Remaining < 0 || v.Remaining > l.Max || v.RetryAfter < 0 || v.ResetAfter < 0 || passed == 1 && v.RetryAfter != 0 {
		t.Errorf("%q, %v: %d passed, %+v", asked.Text, asked.Values, passed, v)
	}
}
