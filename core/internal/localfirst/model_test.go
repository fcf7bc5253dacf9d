package localfirst_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
	. "github.com/accesslimit/accesslimit/core/internal/localfirst/localtest"
	"github.com/accesslimit/accesslimit/core/internal/memstore"
	"github.com/accesslimit/accesslimit/internal/leakcheck"
)

func TestMain(m *testing.M) { leakcheck.Main(m) }

// For any sequence of calls, every number of the answers is the one that a store returns if it is
// asked each time. The calls have one counter or several.
func TestAnswersAreThoseOfTheStore(t *testing.T) {
	repeated := 0
	limits := limitsOfAll(t)
	rapid.Check(t, func(rt *rapid.T) {
		few := rapid.SliceOfNDistinct(rapid.IntRange(0, len(limits)-1), 1, 3, rapid.ID[int]).Draw(rt, "counters")
		several := rapid.SliceOfN(calls(limits, few), 1, 4).Draw(rt, "calls")
		trace := rapid.SliceOfN(steps(several), 50, 100).Draw(rt, "trace")
		begin := time.Duration(rapid.Int64Range(0, 3*Second).Draw(rt, "begin")) * time.Microsecond
		var wrong error
		synctest.Test(t, func(t *testing.T) {
			time.Sleep(begin)
			p := pair{process: NewProcess(t, NewShared(t, 1000)), plain: memstore.New(1000, nil)}
			defer p.plain.Close()
			for i := range trace {
				if wrong = p.play(&trace[i]); wrong != nil {
					wrong = fmt.Errorf("step %d, %s: %w", i, trace[i].do, wrong)
					return
				}
			}
			repeated += p.repeated
		})
		if wrong != nil {
			rt.Fatal(wrong)
		}
	})
	if repeated == 0 {
		t.Error("no refusal was ever repeated")
	}
}

// limitsOfAll returns two limits for each counter.
func limitsOfAll(t *testing.T) (all [][]*algorithm.Limit) {
	for kind := algorithm.SlidingWindow; kind <= algorithm.CalendarWindow; kind++ {
		all = append(all, []*algorithm.Limit{Windowed(kind, 3, Second), Windowed(kind, 5, Second)})
		all = append(all, []*algorithm.Limit{Windowed(kind, 4, 1_000_003), Windowed(kind, 4, 1_000_003)})
	}
	return append(all,
		[]*algorithm.Limit{Bucket(t, 5, Second, 4), Bucket(t, 7, Second, 3)},
		[]*algorithm.Limit{Bucket(t, 3, Hour, 5), Bucket(t, 3, Hour, 6)},
		[]*algorithm.Limit{Windowed(algorithm.Concurrency, 2, Second), Windowed(algorithm.Concurrency, 2, Second)})
}

// step is done to both stores, some time after the last step.
type step struct {
	do       string
	counters []algorithm.Counter
	wait     time.Duration
	waits    string        // "retry" or "reset": as long as the last answer said, in place of wait
	early    time.Duration // less of that
}

// calls draws lists of counters from a few that they share.
func calls(limits [][]*algorithm.Limit, few []int) *rapid.Generator[[]algorithm.Counter] {
	one := func(t *rapid.T, i int) algorithm.Counter {
		limit := limits[i][rapid.SampledFrom([]int{0, 0, 0, 1}).Draw(t, "size")]
		c := Counter(fmt.Sprint("user:", i), limit, rapid.SampledFrom([]int64{1, 1, 1, 2, limit.Max, 0}).Draw(t, "cost"))
		c.Behind = uint16(max(0, rapid.IntRange(-3, 1).Draw(t, "behind")))
		if limit.Kind == algorithm.Concurrency {
			c.Mark = rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "holder")
		}
		return c
	}
	return rapid.Custom(func(t *rapid.T) (all []algorithm.Counter) {
		members := few
		if rapid.Bool().Draw(t, "alone") {
			members = few[:1]
		}
		for _, i := range members {
			all = append(all, one(t, i))
		}
		slices.SortStableFunc(all, func(a, b algorithm.Counter) int { return int(a.Behind) - int(b.Behind) })
		return all
	})
}

func steps(calls [][]algorithm.Counter) *rapid.Generator[step] {
	return rapid.Custom(func(t *rapid.T) step {
		const most = "ask ask ask ask ask ask ask ask ask ask ask look give-back reset reserve"
		return step{
			do:       rapid.SampledFrom(strings.Fields(most)).Draw(t, "do"),
			counters: rapid.SampledFrom(calls).Draw(t, "call"),
			wait:     time.Duration(rapid.SampledFrom([]int64{0, 0, 0, 0, 1, 1000, 31_250, 100_000, Second, 3 * Second}).Draw(t, "wait")) * time.Microsecond,
			waits:    rapid.SampledFrom([]string{"", "", "", "", "retry", "reset"}).Draw(t, "waits"),
			early:    time.Duration(rapid.IntRange(0, 1).Draw(t, "early")) * time.Microsecond,
		}
	})
}

// pair is a process, and a store that answers the same calls by itself.
type pair struct {
	process  Process
	plain    *memstore.Store
	last     algorithm.Verdict
	charges  []algorithm.Charge
	repeated int
}

func (p *pair) play(s *step) error {
	wait := s.wait
	switch s.waits {
	case "retry":
		wait = time.Duration(p.last.RetryAfter)*time.Microsecond - s.early
	case "reset":
		wait = time.Duration(p.last.ResetAfter)*time.Microsecond - s.early
	}
	time.Sleep(max(0, wait))
	ctx, last := context.Background(), &s.counters[len(s.counters)-1]
	switch s.do {
	case "give-back":
		_, _ = p.process.Change(ctx, &algorithm.Change{Charges: p.charges}), p.plain.Change(ctx, &algorithm.Change{Charges: p.charges})
		p.charges = nil
	case "reset":
		_, _ = p.process.Reset(ctx, last.Key)
		_, _ = p.plain.Reset(ctx, last.Key)
	case "reserve":
		for i := range s.counters {
			if c := &s.counters[i]; c.Limit.Kind == algorithm.TokenBucket {
				got, want := algorithm.NewOp(algorithm.InTurn, *c), algorithm.NewOp(algorithm.InTurn, *c)
				got.Patience, want.Patience = Second, Second
				p.process.Do(ctx, got)
				p.plain.Do(ctx, want)
				return p.same(c, got.Verdicts[0], want.Verdicts[0])
			}
		}
	default:
		return p.ask(s)
	}
	return nil
}

func (p *pair) ask(s *step) error {
	mode := algorithm.Looks
	if s.do == "ask" {
		mode = algorithm.AllOrNone
	}
	op := algorithm.NewOp(mode, s.counters...)
	got := p.process.Do(context.Background(), algorithm.NewOp(mode, s.counters...))
	p.plain.Do(context.Background(), op)
	want := op.Verdicts
	for i := range got {
		if got[i].From == algorithm.FromRefusal {
			p.repeated++
		}
		if err := p.same(&s.counters[i], got[i], want[i]); err != nil {
			return err
		}
		if charge := s.counters[i].Charged(&want[i]); s.do == "ask" && algorithm.Passes(s.counters, want) && charge.Cost > 0 {
			p.charges = append(p.charges, charge)
		}
	}
	p.last = want[0]
	return nil
}

// same compares two answers.
func (p *pair) same(c *algorithm.Counter, got, want algorithm.Verdict) error {
	got.From = want.From
	if got != want {
		return fmt.Errorf("%s, cost %d: %+v, want %+v", c.Key, c.Cost, got, want)
	}
	return nil
}
