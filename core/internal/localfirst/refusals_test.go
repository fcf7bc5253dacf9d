package localfirst_test

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
)

// A refusal is repeated for a second at most, with a wait that passes; and not a microsecond longer than it holds.
func TestARefusalIsRepeated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		behind := newShared(t, 100)
		s := newProcess(t, behind)
		long, short := counter("long", windowed(algorithm.FixedWindow, 1, minute), 1), counter("short", windowed(algorithm.FixedWindow, 1, second/2), 1)
		mustTake(t, s, long)
		mustTake(t, s, short)
		told := mustRefuse(t, s, algorithm.FromStore, long)
		mustRefuse(t, s, algorithm.FromStore, short)
		behind.wantAsked(t, 4)
		time.Sleep(499_998 * time.Microsecond)
		mustRefuse(t, s, algorithm.FromRefusal, short)
		v := mustRefuse(t, s, algorithm.FromRefusal, long)
		if passed := int64(499_998); v.RetryAfter != told.RetryAfter-passed || v.ResetAfter != told.ResetAfter-passed || v.At != told.At+passed {
			t.Errorf("%+v, half a second after %+v", v, told)
		}
		behind.wantAsked(t, 0)
		time.Sleep(2 * time.Microsecond)
		mustTake(t, s, short)
		mustRefuse(t, s, algorithm.FromRefusal, long)
		time.Sleep(500 * time.Millisecond)
		mustRefuse(t, s, algorithm.FromStore, long)
		behind.wantAsked(t, 2)
	})
}

// A slow answer is remembered from when it was asked for, and told from when it came.
func TestASlowRefusal(t *testing.T) {
	for name, before := range map[string]bool{"on the way there": true, "on the way back": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				behind := newShared(t, 100)
				s, c := newProcess(t, behind), counter("user:a", windowed(algorithm.FixedWindow, 1, second/2), 1)
				mustTake(t, s, c)
				slow := func() { time.Sleep(100 * time.Millisecond) }
				if before {
					behind.before = slow
				} else {
					behind.after = slow
				}
				sent := time.Now()
				v := mustRefuse(t, s, algorithm.FromStore, c)
				behind.before, behind.after = nil, nil
				told := time.Now().Add(time.Duration(v.RetryAfter) * time.Microsecond)
				again := mustRefuse(t, s, algorithm.FromRefusal, c)
				ends, way := time.UnixMicro(v.At+v.RetryAfter), time.Duration(0)
				if !before {
					way = 100 * time.Millisecond
				}
				if late := told.Sub(ends); late < 0 || late > way {
					t.Errorf("told to wait %v longer than needed, of an answer that was on its way for %v", late, way)
				}
				if got := time.Now().Add(time.Duration(again.RetryAfter) * time.Microsecond); !got.Equal(told) {
					t.Errorf("told to come back %v later than by the store", got.Sub(told))
				}
				holds := time.Duration(v.RetryAfter) * time.Microsecond
				time.Sleep(time.Until(sent.Add(holds - 2*time.Microsecond)))
				mustRefuse(t, s, algorithm.FromRefusal, c)
				time.Sleep(2 * time.Microsecond)
				behind.asked.Store(0)
				ask(s, c)
				behind.wantAsked(t, 1)
			})
		})
	}
}

// What is always asked of the store, though a refusal of the same counter is remembered; and of what no refusal is ever remembered.
func TestWhatIsAskedEachTime(t *testing.T) {
	behind := newShared(t, 100)
	s, limit := newProcess(t, behind), windowed(algorithm.FixedWindow, 5, hour)
	c := counter("user:a", limit, 4)
	mustTake(t, s, c)
	slot, log := counter("slots", windowed(algorithm.Concurrency, 1, hour), 1), counter("log", windowed(algorithm.SlidingLog, 4, hour), 1)
	slot.Mark = "a"
	mustTake(t, s, slot)
	slot.Mark = "b"
	for range 3 {
		mustTake(t, s, log)
	}
	log.Cost = 3 // one of them comes back before
	var many []algorithm.Counter
	for i := range 5 {
		many = append(many, counter(fmt.Sprint("many", i), windowed(algorithm.FixedWindow, 1, hour), 1))
	}
	mustTake(t, s, many...)
	dry, free := counter("dry", limit, 1), counter("free", limit, 0)
	dry.Dry = true
	for name, counters := range map[string][]algorithm.Counter{
		"a smaller cost":                {counter("user:a", limit, 3)},
		"a larger cost":                 {counter("user:a", limit, 5)},
		"a lower limit":                 {counter("user:a", windowed(algorithm.FixedWindow, 4, hour), 4)},
		"another key":                   {counter("user:b", limit, 4)},
		"one more counter":              {c, counter("user:b", limit, 1)},
		"never: one that is only tried": {c, dry},
		"never: one that costs nothing": {c, free},
		"never: a slot in flight":       {slot},
		"never: permits of a log that come back one by one": {log},
		"never: more together than are kept":                many,
	} {
		t.Run(name, func(t *testing.T) {
			mustRefuse(t, s, algorithm.FromStore, c)
			mustRefuse(t, s, algorithm.FromRefusal, c)
			behind.asked.Store(0)
			ask(s, counters...)
			behind.wantAsked(t, 1)
			for range 2 {
				s.Decide(context.Background(), counters, false, make([]algorithm.Verdict, len(counters)))
				s.Decide(context.Background(), []algorithm.Counter{c}, false, make([]algorithm.Verdict, 1))
				behind.wantAsked(t, 2)
			}
			if strings.HasPrefix(name, "never: ") {
				ask(s, counters...)
				behind.wantAsked(t, 1)
			}
			for _, of := range []algorithm.Counter{c, counter("user:b", limit, 1)} {
				_ = s.Reset(context.Background(), of.Key)
			}
			mustTake(t, s, c)
		})
	}
}

// What this process does to a key is seen at once: the next call asks.
func TestOwnChangesAreSeenAtOnce(t *testing.T) {
	ctx := context.Background()
	behind := newShared(t, 100)
	s := newProcess(t, behind)
	limit, own := bucket(t, 1, hour, 2), new(algorithm.Banned(2, hour, hour, second))
	c := counter("user:a", limit, 1)
	banned := algorithm.Counter{Key: []byte("test:{user:a}:ban"), Limit: own, Watched: []int{0}}
	for name, change := range map[string]func(v algorithm.Verdict){
		"reset": func(algorithm.Verdict) { _ = s.Reset(ctx, c.Key) },
		"give back": func(v algorithm.Verdict) {
			_ = s.GiveBack(ctx, []algorithm.Charge{{Key: c.Key, Limit: limit, Cost: 1, At: v.At}})
		},
		"ban":   func(algorithm.Verdict) { _ = s.Ban(ctx, banned.Key, hour) },
		"unban": func(algorithm.Verdict) { _ = s.Reset(ctx, banned.Key) },
		"a turn": func(algorithm.Verdict) {
			v := s.Reserve(ctx, &c, 2*hour)
			if v.RetryAfter != 0 {
				t.Error("no turn")
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, _ = s.Reset(ctx, c.Key), s.Reset(ctx, banned.Key)
			mustTake(t, s, c)
			v := mustTake(t, s, c)
			mustRefuse(t, s, algorithm.FromStore, c, banned)
			behind.asked.Store(0)
			change(v)
			ask(s, c, banned)
			behind.wantAsked(t, 1)
		})
	}
}

// A refusal that was on its way when the key was reset is not remembered after it.
func TestARefusalOvertakenByAReset(t *testing.T) {
	behind := newShared(t, 100)
	s, c := newProcess(t, behind), counter("user:a", windowed(algorithm.SlidingWindow, 1, hour), 1)
	mustTake(t, s, c)
	decided, reset := make(chan struct{}), make(chan struct{})
	behind.after = func() {
		close(decided)
		<-reset
	}
	refused := make(chan algorithm.Verdict)
	go func() { refused <- ask(s, c)[0] }()
	<-decided // asked is not enough: the Reset could still overtake the question
	if err := s.Reset(context.Background(), c.Key); err != nil {
		t.Fatal(err)
	}
	close(reset)
	if v := <-refused; v.RetryAfter == 0 {
		t.Fatalf("%+v, want it refused before the reset", v)
	}
	behind.after = nil
	mustTake(t, s, c)
}

// What other processes do is seen after a second: a permit that was given back, a reset, a ban that was lifted.
func TestOthersChangesAreSeenWithinASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		behind := newShared(t, 100)
		here, there := newProcess(t, behind), newProcess(t, behind)
		c := counter("user:a", windowed(algorithm.SlidingWindow, 1, hour), 1)
		mustTake(t, here, c)
		mustRefuse(t, here, algorithm.FromStore, c)
		_ = there.Reset(context.Background(), c.Key)
		time.Sleep(time.Second - 2*time.Microsecond)
		mustRefuse(t, here, algorithm.FromRefusal, c)
		time.Sleep(2 * time.Microsecond)
		mustTake(t, here, c)
	})
}

// An answer that did not come is none, and is not remembered.
func TestFailuresAreNotRemembered(t *testing.T) {
	behind := newShared(t, 100)
	s, c := newProcess(t, behind), counter("user:a", windowed(algorithm.SlidingWindow, 1, hour), 1)
	c.Required = true
	mustTake(t, s, c)
	mustRefuse(t, s, algorithm.FromStore, c)
	_ = s.Reset(context.Background(), c.Key)
	behind.ill.Store(true)
	for range 2 {
		behind.asked.Store(0)
		if v := ask(s, c)[0]; v.Err == nil {
			t.Errorf("%+v of a store that is ill", v)
		}
		behind.wantAsked(t, 1)
	}
}

// However many are refused, so many refusals are remembered, in so much memory; and a flood of callers who come once leaves alone what is
// asked for.
func TestRefusalsAreBounded(t *testing.T) { synctest.Test(t, testBounds) } // in which no refusal grows old

func testBounds(t *testing.T) {
	behind := newShared(t, 300_000)
	s, limit := newProcess(t, behind), windowed(algorithm.FixedWindow, 1, hour)
	const flood, most = 100_000, 65_536
	counters := make([]algorithm.Counter, flood)
	for i := range counters {
		counters[i] = counter(fmt.Sprintf("user:%020d", i), limit, 1)
		behind.Store.Decide(context.Background(), counters[i:i+1], true, make([]algorithm.Verdict, 1))
	}
	var hot []algorithm.Counter
	for i := range 20 {
		hot = append(hot, counter(fmt.Sprint("hot", i), limit, 1))
		mustTake(t, s, hot[i]) // before the first refusal, because two keys may share a count of changes
	}
	for i := range hot {
		mustRefuse(t, s, algorithm.FromStore, hot[i])
	}
	before := heap()
	missed := 0
	for i := range counters {
		ask(s, counters[i])
		if i%50 == 0 && ask(s, hot[i/50%20])[0].From != algorithm.FromRefusal {
			missed++
		}
	}
	used := heap() - before
	// Beside the key, which takes 64 bytes here, 115 bytes each.
	if most := uint64(most * (64 + 115)); used > most {
		t.Errorf("%d bytes for 65,536 refusals, want at most %d", used, most)
	}
	if missed > 0 {
		t.Errorf("refusals that are asked for were lost %d times in a flood", missed)
	}
	runtime.KeepAlive(counters)
	runtime.KeepAlive(s)
}

func heap() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// A refusal by one of several servers is repeated whatever becomes of the counters on the others,
// and nothing is said of these: calls that pass charge them all the time.
func TestARefusalByOneOfSeveralServers(t *testing.T) {
	behind := shards{newShared(t, 100)}
	s := newProcess(t, behind)
	limit := windowed(algorithm.SlidingWindow, 1, hour)
	own, also, all := counter("user:a", limit, 1), counter("user:a", windowed(algorithm.FixedWindow, 5, hour), 1), counter("all", windowed(algorithm.SlidingLog, 10, hour), 1)
	for name, call := range map[string][]algorithm.Counter{"first": {own, also, all}, "last": {all, own, also}} {
		t.Run(name, func(t *testing.T) {
			others, last := slices.IndexFunc(call, func(c algorithm.Counter) bool { return tag(c) == "all" }), len(call)-1
			mustTake(t, s, call...)
			mustTake(t, s, all) // so that any permit of a log may come back next, and nothing of it is steady
			first := ask(s, call...)
			if algorithm.Passes(call, first) || first[others].Remaining != 8 {
				t.Fatalf("%+v", first)
			}
			mustTake(t, s, counter("user:b", limit, 1), all)
			behind.asked.Store(0)
			for i, v := range ask(s, call...) {
				switch {
				case i == others:
					if v != (algorithm.Verdict{From: algorithm.FromNobody}) {
						t.Errorf("of a counter that was not asked it says %+v", v)
					}
				case v.From != algorithm.FromRefusal || v.Remaining != first[i].Remaining || (v.RetryAfter > 0) != (first[i].RetryAfter > 0):
					t.Errorf("%+v, after %+v", v, first[i])
				}
			}
			behind.wantAsked(t, 0)
			ask(s, call[:last]...)
			behind.wantAsked(t, 1)                             // another call
			for _, c := range []algorithm.Counter{own, also} { // what this process does to the server that refused is seen at once
				_ = s.GiveBack(context.Background(), []algorithm.Charge{{Key: c.Key, Limit: c.Limit}})
				ask(s, call...)
				behind.wantAsked(t, 1)
				ask(s, call...)
				behind.wantAsked(t, 0)
			}
			for _, key := range [][]byte{own.Key, also.Key, all.Key, counter("user:b", limit, 1).Key} {
				_ = s.Reset(context.Background(), key)
			}
		})
	}
}

// When several servers refuse, all of their answers are repeated, until this process changes any of
// them.
func TestARefusalBySeveralServers(t *testing.T) {
	behind := shards{newShared(t, 100)}
	s := newProcess(t, behind)
	own, all := counter("user:a", windowed(algorithm.SlidingWindow, 1, minute), 1), counter("all", windowed(algorithm.SlidingWindow, 1, hour), 1)
	for _, change := range []algorithm.Counter{own, all} {
		mustTake(t, s, own, all)
		mustRefuse(t, s, algorithm.FromStore, own, all)
		for _, v := range ask(s, own, all) {
			if v.RetryAfter == 0 || v.From != algorithm.FromRefusal {
				t.Errorf("%+v, want both to refuse again", v)
			}
		}
		behind.asked.Store(0)
		_ = s.Reset(context.Background(), change.Key)
		ask(s, own, all)
		behind.wantAsked(t, 1)
		_, _ = s.Reset(context.Background(), own.Key), s.Reset(context.Background(), all.Key)
	}
}

// A ban on another server than the one that refused is asked in each of its windows: it has to hear
// of refusals there.
func TestARefusalBesideABanElsewhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		behind := shards{newShared(t, 100)}
		s := newProcess(t, behind)
		own, other := counter("user:a", windowed(algorithm.SlidingWindow, 1, hour), 1), counter("user:b", windowed(algorithm.FixedWindow, 9, hour), 1)
		ban := algorithm.Counter{Key: []byte("test:{user:b}:ban"), Limit: new(algorithm.Banned(2, hour, hour, second/2)), Watched: []int{1}}
		mustTake(t, s, own, other, ban)
		mustRefuse(t, s, algorithm.FromStore, own, other, ban)
		behind.asked.Store(0)
		mustRefuse(t, s, algorithm.FromRefusal, own, other, ban)
		behind.wantAsked(t, 0)
		time.Sleep(second / 2 * time.Microsecond)
		mustRefuse(t, s, algorithm.FromStore, own, other, ban)
	})
}

// A refusal that was only looked at is repeated for other looks, but not for a call of which a ban
// has to hear. Peek always asks, and nothing is remembered of its answer.
func TestALookIsRepeated(t *testing.T) {
	behind := newShared(t, 100)
	s := newProcess(t, behind)
	c := counter("user:a", windowed(algorithm.FixedWindow, 1, hour), 1)
	ban := algorithm.Counter{Key: []byte("test:{user:a}:ban"), Limit: new(algorithm.Banned(2, hour, hour, hour)), Watched: []int{0}}
	for _, call := range [][]algorithm.Counter{{c}, {c, ban}} {
		verdicts := make([]algorithm.Verdict, len(call))
		look := func(asked int64) {
			t.Helper()
			if s.Look(context.Background(), call, verdicts); algorithm.Passes(call, verdicts) {
				t.Errorf("%+v, want it refused", verdicts)
			}
			behind.wantAsked(t, asked)
		}
		mustTake(t, s, call...)
		for range 2 {
			s.Decide(context.Background(), call, false, verdicts)
		}
		behind.wantAsked(t, 3)
		look(1)
		look(0)
		if s.Recall(call, verdicts) != (len(call) == 1) {
			t.Errorf("%d counters: recalled though a ban has to hear of it, or not though none has", len(call))
		}
		ask(s, call...)
		behind.asked.Store(0)
		if !s.Recall(call, verdicts) {
			t.Errorf("%d counters: not recalled", len(call))
		}
		look(0)
		_ = s.Reset(context.Background(), c.Key)
		s.Look(context.Background(), call, verdicts)
		behind.wantAsked(t, 1)
	}
}

// A refusal by counters that do not depend on who calls is recalled for others, unless one of the
// caller's own refused as well.
func TestARefusalForAllIsRecalled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newProcess(t, newShared(t, 100))
		all, own := counter("ip", windowed(algorithm.FixedWindow, 1, hour), 1), counter("user:a", windowed(algorithm.FixedWindow, 2, hour), 1)
		ban := algorithm.Counter{Key: []byte("test:{user:a}:ban"), Limit: new(algorithm.Banned(2, hour, hour, second/2)), Watched: []int{1}, Personal: true}
		own.Personal = true
		recalled := func() bool { return s.Recall([]algorithm.Counter{all}, make([]algorithm.Verdict, 1)) }
		mustTake(t, s, all, own, ban)
		mustRefuse(t, s, algorithm.FromStore, all, own, ban)
		if !recalled() {
			t.Error("not recalled")
		}
		time.Sleep(second / 2 * time.Microsecond)
		if recalled() {
			t.Error("recalled in another window of the caller's own ban")
		}
		mustTake(t, s, own)
		mustRefuse(t, s, algorithm.FromStore, all, own, ban)
		if recalled() {
			t.Error("recalled though the caller's own limit refused, too")
		}
	})
}
