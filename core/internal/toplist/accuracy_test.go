package toplist

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/accesslimit/accesslimit/internal/redistest"
)

// traffic returns the subjects of refused calls by their numbers.
type traffic func() int

// zipf is traffic in which the second subject is refused half as often as the first, and so on.
func zipf(random *rand.Rand) traffic {
	draw := rand.NewZipf(random, 1.1, 1, 1_000_000)
	return func() int { return int(draw.Uint64()) }
}

// uniform is traffic of a million subjects, twelve of which are refused a little more than the
// 1 % from which on a subject is listed.
func uniform(random *rand.Rand) traffic {
	return func() int {
		if heavy := random.IntN(80); heavy < 12 {
			return heavy
		}
		return 100 + random.IntN(1_000_000)
	}
}

// Every subject with more than 1 % of a rule's refusals is listed, with at most 10 % more or less
// than it had. Three processes share the refusals. The seeds are fixed, because in one in some
// thousand runs chance alone takes a sample farther away.
func TestAccuracy(t *testing.T) {
	for _, test := range []struct {
		name    string
		traffic func(*rand.Rand) traffic
		calls   int
		rate    float64 // of refusals in each process, a second
	}{
		{"zipf", zipf, 200_000, 1_000},
		{"uniform tail", uniform, 200_000, 1_000},
		{"zipf, sampled", zipf, 2_000_000, 100_000},
		{"uniform tail, sampled", uniform, 2_000_000, 100_000},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			client := redistest.Start(t).Client(t)
			var clock time.Duration
			var rules [3]*Rule
			for i := range rules {
				rules[i] = newTable(t, newRedis(t, client), &clock).Rule("api")
			}
			draw := test.traffic(rand.New(rand.NewPCG(7, 7)))
			refused := make(map[int]int)
			flushEvery := int(3 * 7.5 * test.rate)
			for call := range test.calls {
				subject := draw()
				refused[subject]++
				clock = time.Duration(float64(call) / 3 / test.rate * float64(time.Second))
				observe(rules[call%3], uint64(call), subject)
				if call%flushEvery == flushEvery-1 || call == test.calls-1 {
					for _, r := range rules {
						r.table.Flush()
					}
				}
			}
			wantAccurate(t, rules[0].table, "api", refused, test.calls)
		})
	}
}

// wantAccurate checks the list of a rule, and the same subjects in the list of all.
func wantAccurate(t *testing.T, table *Table, rule string, refused map[int]int, calls int) {
	t.Helper()
	for _, list := range []string{rule, all} {
		lists, err := Read(background, table, list, 60)
		if err != nil {
			t.Fatal(err)
		}
		listed, worst, some := make(map[string]float64), 0.0, 0
		for _, e := range lists.Refused {
			listed[e.Subject] = e.Number
		}
		for subject, n := range refused {
			if n <= calls/100 {
				continue
			}
			some++
			off := math.Abs(listed[user(subject)]/float64(n) - 1)
			if worst = max(worst, off); off > 0.1 {
				t.Errorf("%q: subject %d was refused %d times, and is listed with %v", list, subject, n, listed[user(subject)])
			}
		}
		if t.Logf("%q: %d subjects, at most %.1f %% off", list, some, 100*worst); some < 9 {
			t.Errorf("only %d subjects have 1 %%: the test shows nothing", some)
		}
	}
}
