package algorithm_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
)

// list models a log as it is promised: every admitted call counts for a whole window.
type list struct {
	limit    algorithm.Limit
	admitted []logged
}

// logged is a call that was admitted.
type logged struct {
	at, cost, position int64
	note               string
}

// newest returns the time of the last admitted call.
func (l *list) newest() int64 {
	if len(l.admitted) == 0 {
		return 0
	}
	return l.admitted[len(l.admitted)-1].at
}

// counts reports whether a call counts at a time, or if the clock stepped back, at the time of the
// newest call.
func (l *list) counts(call logged, now int64) bool {
	return call.at > max(now, l.newest())-l.limit.Window
}

// live returns the calls that count at a time. If the clock stepped back, they count as used now.
func (l *list) live(now int64) (calls []logged) {
	for _, call := range l.admitted {
		if l.counts(call, now) {
			if l.newest() > now {
				call.at = now
			}
			calls = append(calls, call)
		}
	}
	return calls
}

// answer predicts a verdict from all calls that were ever admitted. If the clock stepped back, a
// call that may charge changes their times.
func (l *list) answer(now, cost int64, charge bool) (want algorithm.Verdict) {
	calls, used := l.live(now), int64(0)
	for _, call := range calls {
		used += call.cost
	}
	if l.newest() > now && charge && cost > 0 {
		l.admitted = slices.Clone(calls)
	}
	want = algorithm.Verdict{At: now, Remaining: max(0, l.limit.Max-used)}
	if used > 0 {
		want.ResetAfter = calls[len(calls)-1].at + l.limit.Window - now
	}
	if cost > l.limit.Max {
		want.RetryAfter = l.limit.Window
		return want
	}
	for _, call := range calls {
		if cost == 0 || used+cost <= l.limit.Max {
			break
		}
		used, want.RetryAfter = used-call.cost, call.at+l.limit.Window-now
	}
	return want
}

// charge predicts the verdict of a call, and admits it if it fits.
func (l *list) charge(now, cost int64, note string) (want algorithm.Verdict) {
	want = l.answer(now, cost, true)
	if want.RetryAfter == 0 && cost > 0 {
		l.admitted, want.Position = l.live(now), now+cost
		if newest := len(l.admitted) - 1; newest >= 0 {
			want.Position = l.admitted[newest].position + cost
		}
		l.admitted = append(l.admitted, logged{now, cost, want.Position, note})
		want.Taken, want.Remaining, want.ResetAfter = cost, want.Remaining-cost, l.limit.Window
	}
	return want
}

// giveBack removes up to this many permits from the call of a receipt, as far as it still has them.
func (l *list) giveBack(now int64, receipt logged, permits int64) {
	for i := range l.admitted {
		call := &l.admitted[i]
		if call.note == receipt.note && l.counts(*call, now) {
			if call.cost -= permits; call.cost <= 0 {
				l.admitted = slices.Delete(l.admitted, i, i+1)
			}
			return
		}
	}
}

// Whichever calls are given back, in any order, whole or in parts, both engines answer as if those
// calls had cost so much less. This includes many calls in one microsecond, calls that stop
// counting, clocks that step back, and counters that begin anew.
func TestSlidingLogGivesBack(t *testing.T) {
	s := startServer(t)
	rounds := 16
	if os.Getenv("ACCESSLIMIT_LONG") != "" {
		rounds = 1000
	}
	for round := range rounds {
		rng := rand.New(rand.NewPCG(uint64(round), 24))
		most := []int64{3, 30, 200, 400}[round%4]
		limit := algorithm.Windowed(algorithm.SlidingLog, most, second)
		g := &givenBack{T: t, rng: rng, engines: newEngines(early), list: list{limit: limit}}
		for range 200 {
			g.step()
		}
		if t.Failed() {
			return
		}
		g.run(t, s, expiring, nil)
	}
}

// givenBack is a random trace on both engines beside the model.
type givenBack struct {
	*testing.T
	*engines
	rng      *rand.Rand
	list     list
	receipts []logged
}

func (g *givenBack) step() {
	switch n := g.rng.IntN(100); {
	case n < 40:
		for range 1 + g.rng.IntN(int(g.list.limit.Max)/8+1) {
			g.charge(1 + g.rng.Int64N(1+g.rng.Int64N(4)))
		}
	case n < 42:
		g.charge(g.list.limit.Max/2 + g.rng.Int64N(g.list.limit.Max))
	case n < 82:
		for range 1 + g.rng.IntN(len(g.receipts)/16+1) {
			g.giveOneBack()
		}
	case n < 92:
		g.now += g.rng.Int64N(g.list.limit.Window / (1 + g.rng.Int64N(50)))
	case n < 94:
		g.now -= g.rng.Int64N(2 * g.list.limit.Window)
	case n < 95:
		g.reset("log")
		g.list.admitted = nil
		g.now++ // two lives of a counter in one microsecond cannot be distinguished
	case n < 97:
		g.wantRecords()
	default:
		cost := g.rng.Int64N(g.list.limit.Max + 2)
		if v := g.decide(false, g.now, g.call(cost, ""))[0]; v != g.list.answer(g.now, cost, false) {
			g.Fatalf("%s\nlooked at: %+v, want %+v", g.story(len(g.steps)-1), v, g.list.answer(g.now, cost, false))
		}
	}
}

func (g *givenBack) call(cost int64, note string) []algorithm.Counter {
	return []algorithm.Counter{{Key: []byte("log"), Limit: &g.list.limit, Cost: cost, Mark: note}}
}

func (g *givenBack) charge(cost int64) {
	g.Helper()
	note := fmt.Sprint("call ", len(g.steps))
	got, want := g.decide(true, g.now, g.call(cost, note))[0], g.list.charge(g.now, cost, note)
	if got != want {
		g.Fatalf("%s\n%d taken: %+v, want %+v", g.story(len(g.steps)-1), cost, got, want)
	}
	if got.RetryAfter == 0 {
		g.receipts = append(g.receipts, logged{got.At, cost, got.Position, note})
	}
	g.now += g.rng.Int64N(3) * g.rng.Int64N(2)
}

func (g *givenBack) giveOneBack() {
	if len(g.receipts) == 0 {
		return
	}
	i := g.rng.IntN(len(g.receipts))
	if g.rng.IntN(3) == 0 { // the newest are given back most often
		i = len(g.receipts) - 1 - g.rng.IntN(min(len(g.receipts), 5))
	}
	receipt, n := &g.receipts[i], int64(0)
	n = 1 + g.rng.Int64N(receipt.cost)
	g.giveBack(algorithm.Charge{Key: []byte("log"), Limit: &g.list.limit, Cost: n, At: receipt.at, Position: receipt.position, Mark: receipt.note})
	g.list.giveBack(g.now, *receipt, n)
	if receipt.cost -= n; receipt.cost == 0 {
		g.receipts = slices.Delete(g.receipts, i, i+1)
	}
}

func (g *givenBack) wantRecords() {
	var want []algorithm.Record
	for _, call := range slices.Backward(g.list.admitted) {
		if g.list.counts(call, g.now) {
			want = append(want, algorithm.Record{At: min(call.at, g.now), Cost: call.cost, Note: call.note})
		}
	}
	if got := g.records("log", &g.list.limit); !slices.Equal(got, want) {
		g.Fatalf("%s\nrecords %v, want %v", g.story(len(g.steps)-1), got, want)
	}
}
