package algorithm_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
)

// Whichever calls are given back, in any order, whole or in parts, both engines give the same
// answers from logs of several segments. This includes many calls in one microsecond, calls that
// stop counting, clocks that step back, and counters that begin anew.
func TestLongLogsGiveBack(t *testing.T) {
	s := startServer(t)
	rounds := 16
	if os.Getenv("ACCESSLIMIT_LONG") != "" {
		rounds = 1000
	}
	for round := range rounds {
		rng := rand.New(rand.NewPCG(uint64(round), 24))
		most := []int64{3, 30, 200, 400}[round%4]
		l := &longLog{engines: newEngines(early), rng: rng, limit: algorithm.Windowed(algorithm.SlidingLog, most, second)}
		for range 200 {
			l.step()
		}
		l.run(t, s, expiring, nil)
	}
}

// longLog is a random trace on a log, on both engines.
type longLog struct {
	*engines
	rng     *rand.Rand
	limit   algorithm.Limit
	charges []algorithm.Charge
}

func (l *longLog) step() {
	switch n := l.rng.IntN(100); {
	case n < 40:
		for range 1 + l.rng.IntN(int(l.limit.Max)/8+1) {
			l.charge(1 + l.rng.Int64N(1+l.rng.Int64N(4)))
		}
	case n < 42:
		l.charge(l.limit.Max/2 + l.rng.Int64N(l.limit.Max))
	case n < 82:
		for range 1 + l.rng.IntN(len(l.charges)/16+1) {
			l.giveOneBack()
		}
	case n < 92:
		l.now += l.rng.Int64N(l.limit.Window / (1 + l.rng.Int64N(50)))
	case n < 94:
		l.now -= l.rng.Int64N(2 * l.limit.Window)
	case n < 95:
		l.reset("log")
		l.now++ // two lives of a counter in one microsecond cannot be distinguished
	case n < 97:
		l.records("log", &l.limit)
	default:
		l.decide(false, l.now, l.call(l.rng.Int64N(l.limit.Max+2)))
	}
}

func (l *longLog) call(cost int64) []algorithm.Counter {
	return []algorithm.Counter{{Key: []byte("log"), Limit: &l.limit, Cost: cost, Mark: fmt.Sprint("call ", len(l.steps))}}
}

func (l *longLog) charge(cost int64) {
	call := l.call(cost)
	if v := l.decide(true, l.now, call)[0]; v.RetryAfter == 0 {
		l.charges = append(l.charges, call[0].Charged(&v))
	}
	l.now += l.rng.Int64N(3) * l.rng.Int64N(2)
}

func (l *longLog) giveOneBack() {
	if len(l.charges) == 0 {
		return
	}
	i := l.rng.IntN(len(l.charges))
	if l.rng.IntN(3) == 0 { // the newest are given back most often
		i = len(l.charges) - 1 - l.rng.IntN(min(len(l.charges), 5))
	}
	part := l.charges[i]
	part.Cost = 1 + l.rng.Int64N(part.Cost)
	l.giveBack(part)
	if l.charges[i].Cost -= part.Cost; l.charges[i].Cost == 0 {
		l.charges = slices.Delete(l.charges, i, i+1)
	}
}
