package denycache_test

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
	. "github.com/accesslimit/accesslimit/core/internal/localfirst/localtest"
	"github.com/accesslimit/accesslimit/internal/leakcheck"
)

func TestMain(m *testing.M) { leakcheck.Main(m) }

// A refusal is repeated for a second at most, with a wait that suffices, and not a microsecond
// longer than it holds.
func TestARefusalIsRepeated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := NewShared(t, 100)
		p := NewProcess(t, shared)
		long := Counter("long", Windowed(algorithm.FixedWindow, 1, Minute), 1)
		short := Counter("short", Windowed(algorithm.FixedWindow, 1, Second/2), 1)
		p.MustTake(t, long)
		p.MustTake(t, short)
		first := p.MustRefuse(t, algorithm.FromStore, long)
		p.MustRefuse(t, algorithm.FromStore, short)
		shared.WantAsked(t, 4)
		const passed = 499_998
		time.Sleep(passed * time.Microsecond)
		p.MustRefuse(t, algorithm.FromRefusal, short)
		v := p.MustRefuse(t, algorithm.FromRefusal, long)
		if v.RetryAfter != first.RetryAfter-passed || v.ResetAfter != first.ResetAfter-passed || v.At != first.At+passed {
			t.Errorf("%+v, half a second after %+v", v, first)
		}
		shared.WantAsked(t, 0)
		time.Sleep(2 * time.Microsecond)
		p.MustTake(t, short)
		p.MustRefuse(t, algorithm.FromRefusal, long)
		time.Sleep(500 * time.Millisecond)
		p.MustRefuse(t, algorithm.FromStore, long)
		shared.WantAsked(t, 2)
	})
}

// A slow answer expires from when it was asked for, and its wait counts from when it came.
func TestASlowRefusal(t *testing.T) {
	const delay = 100 * time.Millisecond
	for name, before := range map[string]bool{"on the way there": true, "on the way back": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				shared := NewShared(t, 100)
				p, c := NewProcess(t, shared), Counter("user:a", Windowed(algorithm.FixedWindow, 1, Second/2), 1)
				p.MustTake(t, c)
				hook, late := &shared.AfterDecide, delay
				if before {
					hook, late = &shared.BeforeDecide, 0
				}
				*hook = func() { time.Sleep(delay) }
				sent := time.Now()
				v := p.MustRefuse(t, algorithm.FromStore, c)
				*hook = nil
				retryAt := time.Now().Add(time.Duration(v.RetryAfter) * time.Microsecond)
				again := p.MustRefuse(t, algorithm.FromRefusal, c)
				if by := retryAt.Sub(time.UnixMicro(v.At + v.RetryAfter)); by < 0 || by > late {
					t.Errorf("the wait is %v longer than needed, of an answer that took %v to come back", by, late)
				}
				if got := time.Now().Add(time.Duration(again.RetryAfter) * time.Microsecond); !got.Equal(retryAt) {
					t.Errorf("the repeated wait ends %v later than the first", got.Sub(retryAt))
				}
				holds := time.Duration(v.RetryAfter) * time.Microsecond
				time.Sleep(time.Until(sent.Add(holds - 2*time.Microsecond)))
				p.MustRefuse(t, algorithm.FromRefusal, c)
				time.Sleep(2 * time.Microsecond)
				shared.Asked.Store(0)
				p.Ask(c)
				shared.WantAsked(t, 1)
			})
		})
	}
}

// Other calls ask the store, even if a refusal of the same counter is remembered. Some calls are
// never remembered.
func TestOtherCallsAskTheStore(t *testing.T) {
	shared := NewShared(t, 100)
	p, limit := NewProcess(t, shared), Windowed(algorithm.FixedWindow, 5, Hour)
	c := Counter("user:a", limit, 4)
	p.MustTake(t, c)
	slot := Counter("slots", Windowed(algorithm.Concurrency, 1, Hour), 1)
	log := Counter("log", Windowed(algorithm.SlidingLog, 4, Hour), 1)
	slot.Mark = "a"
	p.MustTake(t, slot)
	slot.Mark = "b"
	for range 3 {
		p.MustTake(t, log)
	}
	log.Cost = 3 // one of them comes back before
	var many []algorithm.Counter
	for i := range 5 {
		many = append(many, Counter(fmt.Sprint("many", i), Windowed(algorithm.FixedWindow, 1, Hour), 1))
	}
	p.MustTake(t, many...)
	soft, free := Counter("soft", limit, 1), Counter("free", limit, 0)
	soft.Behind = 1
	for name, counters := range map[string][]algorithm.Counter{
		"a smaller cost":            {Counter("user:a", limit, 3)},
		"a larger cost":             {Counter("user:a", limit, 5)},
		"a lower limit":             {Counter("user:a", Windowed(algorithm.FixedWindow, 4, Hour), 4)},
		"another key":               {Counter("user:b", limit, 4)},
		"one more counter":          {c, Counter("user:b", limit, 1)},
		"never: a soft rule":        {c, soft},
		"never: one without a cost": {c, free},
		"never: a slot in flight":   {slot},
		"never: permits of a log that come back one by one": {log},
		"never: more counters than are remembered":          many,
	} {
		t.Run(name, func(t *testing.T) {
			p.MustRefuse(t, algorithm.FromStore, c)
			p.MustRefuse(t, algorithm.FromRefusal, c)
			shared.Asked.Store(0)
			p.Ask(counters...)
			shared.WantAsked(t, 1)
			for range 2 {
				p.Do(context.Background(), algorithm.NewOp(algorithm.Looks, counters...))
				p.Do(context.Background(), algorithm.NewOp(algorithm.Looks, c))
				shared.WantAsked(t, 2)
			}
			if strings.HasPrefix(name, "never: ") {
				p.Ask(counters...)
				shared.WantAsked(t, 1)
			}
			p.MustReset(t, c, Counter("user:b", limit, 1))
			p.MustTake(t, c)
		})
	}
}

// A failure is not remembered.
func TestFailuresAreNotRemembered(t *testing.T) {
	shared := NewShared(t, 100)
	p, c := NewProcess(t, shared), Counter("user:a", Windowed(algorithm.SlidingWindow, 1, Hour), 1)
	c.Required = true
	p.MustTake(t, c)
	p.MustRefuse(t, algorithm.FromStore, c)
	p.MustReset(t, c)
	shared.Down.Store(true)
	for range 2 {
		shared.Asked.Store(0)
		if v := p.Ask(c)[0]; v.Err == nil {
			t.Errorf("%+v of a store that is down", v)
		}
		shared.WantAsked(t, 1)
	}
}

// However many callers are refused, the number of refusals that are remembered, and their memory,
// are bounded. A flood of callers who call once does not replace refusals that are asked for.
func TestTheCacheIsBounded(t *testing.T) { synctest.Test(t, testBounds) } // so that no refusal expires

func testBounds(t *testing.T) {
	shared := NewShared(t, 300_000)
	p, limit := NewProcess(t, shared), Windowed(algorithm.FixedWindow, 1, Hour)
	const flood, bound = 100_000, 65_536
	counters := make([]algorithm.Counter, flood)
	for i := range counters {
		counters[i] = Counter(fmt.Sprintf("user:%020d", i), limit, 1)
		shared.Store.Do(context.Background(), algorithm.NewOp(algorithm.AllOrNone, counters[i]))
	}
	var hot []algorithm.Counter
	for i := range 20 {
		hot = append(hot, Counter(fmt.Sprint("hot", i), limit, 1))
		p.MustTake(t, hot[i]) // before the first refusal, because two keys may share a generation
	}
	for i := range hot {
		p.MustRefuse(t, algorithm.FromStore, hot[i])
	}
	before := heap()
	missed := 0
	for i := range counters {
		p.Ask(counters[i])
		if i%50 == 0 && p.Ask(hot[i/50%20])[0].From != algorithm.FromRefusal {
			missed++
		}
	}
	// Beside the key, which takes 64 bytes here, a refusal takes 115 bytes.
	if used := heap() - before; used > bound*(64+115) {
		t.Errorf("%d bytes for %d refusals, want at most %d", used, bound, bound*(64+115))
	}
	if missed > 0 {
		t.Errorf("refusals that are asked for were lost %d times in a flood", missed)
	}
	runtime.KeepAlive(counters)
	runtime.KeepAlive(p)
}

func heap() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// The answer to a look that may recall is repeated, for others and for calls. Another look always asks, and its
// answer is not remembered.
func TestLooksAreRepeated(t *testing.T) {
	shared := NewShared(t, 100)
	p := NewProcess(t, shared)
	call := Counter("user:a", Windowed(algorithm.FixedWindow, 1, Hour), 1)
	look := algorithm.NewOp(algorithm.Looks, call)
	look.MayRecall = true
	looks := func(asked int64) {
		t.Helper()
		if v := p.Do(context.Background(), look); algorithm.Passes(look.Counters, v) {
			t.Errorf("%+v, want it refused", v)
		}
		shared.WantAsked(t, asked)
	}
	p.MustTake(t, call)
	for range 2 {
		p.Do(context.Background(), algorithm.NewOp(algorithm.Looks, call))
	}
	shared.WantAsked(t, 3)
	looks(1)
	looks(0)
	if !p.Recall(algorithm.NewOp(algorithm.AllOrNone, call)) {
		t.Error("not recalled")
	}
	p.MustReset(t, call)
	p.Do(context.Background(), look)
	shared.WantAsked(t, 1)
}

// A refusal by counters that do not depend on the caller is recalled for others, unless one of the
// caller's own counters refused too.
func TestARefusalForAllIsRecalled(t *testing.T) {
	p := NewProcess(t, NewShared(t, 100))
	all, own := Counter("ip", Windowed(algorithm.FixedWindow, 1, Hour), 1), Counter("user:a", Windowed(algorithm.FixedWindow, 2, Hour), 1)
	own.Personal = true
	recalled := func() bool { return p.Recall(algorithm.NewOp(algorithm.AllOrNone, all)) }
	p.MustTake(t, all, own)
	p.MustRefuse(t, algorithm.FromStore, all, own)
	if !recalled() {
		t.Error("not recalled")
	}
	p.MustTake(t, own)
	p.MustRefuse(t, algorithm.FromStore, all, own)
	if recalled() {
		t.Error("recalled though the caller's own limit refused, too")
	}
}
