package algorithm_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
)

// stored returns the stored form of an override.
func stored(t failer, o *algorithm.Override) string {
	t.Helper()
	text, err := o.Append(nil)
	if err != nil {
		t.Fatalf("%v", err)
	}
	return string(text)
}

// overridable returns a limit of each algorithm, without bans, and a bucket of coarse ticks.
func overridable(t testing.TB) []algorithm.Limit {
	limits := slices.DeleteFunc(oneOfEach(t), func(l algorithm.Limit) bool { return !l.Kind.Limits() })
	return append(limits, bucket(t, 7, hour, 7), bucket(t, 7, 3*hour, 21))
}

// An override of every algorithm reads back as it was written, and makes the limit that Make does.
func TestOverridesReadBack(t *testing.T) {
	zone := algorithm.InCalendar(10, algorithm.NewCalendar("dEurope/Berlin", time.UTC, false))
	for _, l := range append(overridable(t), zone) {
		o, err := l.Override(17, 0)
		if err != nil {
			t.Fatalf("%s: %v", l.Span(), err)
		}
		o.Ends, o.Set, o.Author, o.Note = 1<<53-1, early, "alice", strings.Repeat("n", algorithm.MaxOverrideNote)
		read, err := algorithm.ReadOverride(stored(t, &o))
		if err != nil || read != o {
			t.Errorf("%s: read %+v, %v, want %+v", l.Span(), read, err, o)
		}
		made, err := read.For(&l)
		want, wantErr := l.With(17, 17)
		if err != nil || wantErr != nil || !made.Equal(&want) || made.Max != 17 {
			t.Errorf("%s: %+v, %v, want %+v, %v", l.Span(), made, err, want, wantErr)
		}
	}
}

// writtenByHand is a value in place of an override, and why a rule with a limit ignores it.
type writtenByHand struct {
	name, text string
	limit      algorithm.Limit
	want       error
}

// allWrittenByHand lists values that make no sense, or were made for something else.
func allWrittenByHand(t testing.TB) []writtenByHand {
	window, perHour := algorithm.Windowed(algorithm.SlidingWindow, 10, second), bucket(t, 7, 3*hour, 21)
	log := algorithm.Windowed(algorithm.SlidingLog, 10, second)
	change := func(l algorithm.Limit, do func(o *algorithm.Override)) string {
		o, err := l.Override(100, 0)
		if err != nil {
			t.Fatal(err)
		}
		do(&o)
		return stored(t, &o)
	}
	same := func(*algorithm.Override) {}
	whole := change(window, same)
	blocked := change(window, func(o *algorithm.Override) {
		*o = algorithm.Override{What: algorithm.OverrideBlocked, Span: o.Span}
	})
	with := func(at int) string { return blocked[:at] + "\x01" + blocked[at+1:] }
	return []writtenByHand{
		{"blocked", blocked, window, nil},
		{"blocked with a Max", with(15), window, algorithm.ErrNoOverride},
		{"blocked with a burst", with(22), window, algorithm.ErrNoOverride},
		{"blocked with a permit", with(29), window, algorithm.ErrNoOverride},
		{"blocked with a refill", with(36), window, algorithm.ErrNoOverride},
		{"blocked with a tick", with(43), window, algorithm.ErrNoOverride},
		{"as written", whole, window, nil},
		{"of a bucket", change(perHour, same), perHour, nil},
		{"under an earlier version of the state", change(perHour, func(o *algorithm.Override) {
			o.Span = strings.Replace(o.Span, "tb3:", "tb2:", 1)
		}), perHour, nil},
		{"unlimited, of another window", change(log, func(o *algorithm.Override) {
			*o = algorithm.Override{What: algorithm.OverrideUnlimited, Span: "sl2:1"}
		}), window, nil},
		{"empty", "", window, algorithm.ErrNoOverride},
		{"too short", whole[:len(whole)-1], window, algorithm.ErrNoOverride},
		{"too long", whole + "x", window, algorithm.ErrNoOverride},
		{"cut off before its span", whole[:50], window, algorithm.ErrNoOverride},
		{"another window", change(algorithm.Windowed(algorithm.SlidingWindow, 1, hour), same), window, algorithm.ErrOverrideSpan},
		{"another algorithm", change(log, same), window, algorithm.ErrOverrideSpan},
		{"another kind", "\x04" + whole[1:], window, algorithm.ErrNoOverride},
		{"no Max", change(window, func(o *algorithm.Override) { o.Max = 0 }), window, algorithm.ErrNoOverride},
		{"a Max beyond the algorithm's", change(log, func(o *algorithm.Override) { o.Max = algorithm.MaxEntries + 1 }), log, algorithm.ErrNoOverride},
		{"a burst that the algorithm lacks", change(window, func(o *algorithm.Override) { o.Burst = 1 }), window, algorithm.ErrNoOverride},
		{"a rate that is not that of Max", change(perHour, func(o *algorithm.Override) { o.Refill++ }), perHour, algorithm.ErrNoOverride},
		{"a rate that can be shortened", change(perHour, func(o *algorithm.Override) { o.Refill, o.Permit = 2*o.Refill, 2*o.Permit }), perHour, algorithm.ErrNoOverride},
		{"another tick", change(perHour, func(o *algorithm.Override) { o.Tick = 1 }), perHour, algorithm.ErrNoOverride},
		{"no burst", change(perHour, func(o *algorithm.Override) { o.Burst = 0 }), perHour, algorithm.ErrNoOverride},
		{"a burst that cannot be counted", change(perHour, func(o *algorithm.Override) { o.Burst = algorithm.MaxPermits }), perHour, algorithm.ErrNoOverride},
		{"a burst without room for debts", change(perHour, func(o *algorithm.Override) { o.Burst = 1 << 52 / o.Permit }), perHour, algorithm.ErrNoOverride},
		{"a note that is too long", whole[:len(whole)-2] + "\x01\x04" + strings.Repeat("n", 1025), window, algorithm.ErrNoOverride},
		{"set when no clock shows", change(window, func(o *algorithm.Override) { o.Set = 1 << 53 }), window, algorithm.ErrNoOverride},
		{"an end that no clock shows", change(window, func(o *algorithm.Override) { o.Ends = 1 << 53 }), window, algorithm.ErrNoOverride},
	}
}

// A value that is no override of ours, or was made for another limit, is ignored, with the reason.
func TestOverridesThatAreIgnored(t *testing.T) {
	for _, test := range allWrittenByHand(t) {
		o, err := algorithm.ReadOverride(test.text)
		if err == nil {
			_, err = o.For(&test.limit)
		}
		if !errors.Is(err, test.want) {
			t.Errorf("%s: %v, want %v", test.name, err, test.want)
		}
		if found := o.FoundBy(&test.limit); o.What != 0 && (found.What == o.What) != (test.want == nil) {
			t.Errorf("%s: a store finds %+v", test.name, found)
		}
	}
}

// FuzzOverrides writes any bytes in place of an override into a real Redis. The script finds there
// what Go finds, and the call that it decides is answered as by the limit that holds. What Go reads
// is written as it was.
func FuzzOverrides(f *testing.F) {
	s := startServer(f)
	limits := overridable(f)
	for i := range limits {
		o, err := limits[i].Override(1000, 7)
		if err != nil {
			f.Fatal(err)
		}
		o.Author, o.Note, o.Ends = "alice", "contract 17", early
		f.Add([]byte(stored(f, &o)), int64(-1))
		f.Add([]byte(stored(f, &o)), int64(0))
	}
	for _, test := range allWrittenByHand(f) {
		f.Add([]byte(test.text), int64(0))
	}
	f.Add([]byte(stored(f, &algorithm.Override{What: algorithm.OverrideBlocked, Span: "sw1:60000000"})), int64(0))
	f.Fuzz(func(t *testing.T, text []byte, later int64) {
		now := early + later%hour
		o, err := algorithm.ReadOverride(string(text))
		if err == nil {
			if again := stored(t, &o); again != string(text) {
				t.Errorf("%x reads as %+v and is written as %x", text, o, again)
			}
		}
		found := s.findOverride(t, text, now, limits)
		for i := range limits {
			if want := foundByGo(&o, err, &limits[i], now); found[i] != want {
				t.Errorf("%x at %d, for %s: the script finds %+v, Go %+v", text, now, limits[i].Span(), found[i], want)
			}
		}
	})
}

// findOverride writes a value in place of an override, and returns what the script finds that
// decides by each of the limits.
func (s *server) findOverride(t *testing.T, text []byte, now int64, limits []algorithm.Limit) (found []algorithm.FoundOverride) {
	s.t = t
	ctx, pipe := context.Background(), s.Pipeline()
	pipe.Set(ctx, "{o}:ov1", text, 0)
	replies, counters := make([]*redis.Cmd, len(limits)), make([][]algorithm.Counter, len(limits))
	for i := range limits {
		q := &algorithm.OverrideQuery{Key: []byte("{o}:ov1"), Limit: &limits[i]}
		counters[i] = []algorithm.Counter{{Key: []byte("{o}:counter"), Limit: &limits[i], Cost: 1, Override: q, Own: true}}
		script, argv := algorithm.DecideScript(counters[i]), algorithm.AppendDecide(nil, counters[i], false, now)
		replies[i] = pipe.EvalSha(ctx, s.sha(timed, script), []string{"{o}:counter", "{o}:ov1"}, append(argv, now)...)
	}
	_, _ = pipe.Exec(ctx)
	for i := range limits {
		reply, err := replies[i].Slice()
		verdicts := make([]algorithm.Verdict, 1)
		if err == nil {
			err = algorithm.ReadDecided(reply, counters[i], false, verdicts)
		}
		if err != nil || verdicts[0].At != now {
			t.Fatalf("%x at %d, for %s: %v, %v", text, now, limits[i].Span(), reply, err)
		}
		found = append(found, counters[i][0].Override.Found)
	}
	return found
}

// foundByGo returns what should be found where an override was read with this error.
func foundByGo(o *algorithm.Override, err error, l *algorithm.Limit, now int64) algorithm.FoundOverride {
	switch {
	case err != nil:
		return algorithm.FoundOverride{What: algorithm.OverrideInvalid}
	case o.Ends > 0 && o.Ends <= now:
		return algorithm.FoundOverride{}
	}
	switch _, err := o.For(l); err {
	case nil:
		return algorithm.FoundOverride{What: o.What, Ends: o.Ends, Max: o.Max, Burst: o.Burst}
	case algorithm.ErrOverrideSpan:
		return algorithm.FoundOverride{What: algorithm.OverrideOfOther}
	default:
		return algorithm.FoundOverride{What: algorithm.OverrideInvalid}
	}
}
