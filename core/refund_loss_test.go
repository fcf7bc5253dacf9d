package core_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/accesslimit/accesslimit/core"
)

// refunders are calls on one counter that give back a part of what they were charged. They come at random
// times, and take random times.
type refunders struct {
	what  string
	limit int           // of a minute
	every time.Duration // mean time between calls
	takes time.Duration // mean time until a call gives back
	cost  int
	used  func(*rand.Rand) int
}

// COSTS.md says what is lost of the permits that are given back. In ten minutes of a bubble, the figures are
// the same each time.
func TestWhatRefundsLose(t *testing.T) {
	document, err := os.ReadFile("COSTS.md")
	if err != nil {
		t.Fatal(err)
	}
	tokens := func(r *rand.Rand) int { return 500 + r.IntN(1001) }
	for _, w := range []refunders{
		{"half of the calls do not count", 600, 140 * time.Millisecond, 100 * time.Millisecond, 1, func(r *rand.Rand) int { return r.IntN(2) }},
		{"use 80 % of the limit", 100_000, 750 * time.Millisecond, 5 * time.Second, 4000, tokens},
		{"use all of it", 100_000, 600 * time.Millisecond, 5 * time.Second, 4000, tokens},
	} {
		row := "| " + w.what
		for _, limit := range []core.Limit{core.PerMinute(w.limit).Bucket(0), core.PerMinute(w.limit)} {
			offered, admitted, back, lost := w.run(t, limit)
			row += fmt.Sprintf(" | %.0f %% | %.0f %%", 100*float64(lost)/float64(back), 100*float64(admitted)/float64(offered))
		}
		if row += " |\n"; !strings.Contains(string(document), row) {
			t.Errorf("COSTS.md has no row %s", row)
		}
	}
}

// run returns how many calls came and were admitted, and how many permits were given back and lost.
func (w *refunders) run(t *testing.T, limit core.Limit) (offered, admitted, back, lost int) {
	synctest.Test(t, func(t *testing.T) {
		arrivals, random := rand.New(rand.NewPCG(1, 2)), rand.New(rand.NewPCG(3, 4))
		limiter := newLimiter(t, core.Options{})
		counter := limiter.MustCounter("n", limit)
		var calls sync.WaitGroup
		for begin := time.Now(); time.Since(begin) < 10*time.Minute; time.Sleep(time.Duration(arrivals.ExpFloat64() * float64(w.every))) {
			offered++
			rest, takes := w.cost-w.used(random), time.Duration(random.ExpFloat64()*float64(w.takes))
			d, err := counter.AllowN(background, "s", w.cost)
			if err != nil {
				t.Error(err)
			}
			if !d.Allowed {
				continue
			}
			admitted++
			if back += rest; rest == 0 {
				continue
			}
			calls.Go(func() {
				time.Sleep(takes)
				refund(t, limiter, d, rest)
			})
		}
		calls.Wait()
		lost = int(limiter.Stats().RefundsLost)
	})
	return offered, admitted, back, lost
}
