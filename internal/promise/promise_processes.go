package promise

import (
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/internal/redistest"
)

// longEnv names an environment variable with how long each algorithm is under load from several
// processes, as in "10s"; a fifth of a second unless set.
const longEnv = "ACCESSLIMIT_LONG"

const (
	workerCount     = 4
	eachsGoroutines = 64
)

// ExactAcrossProcesses: four processes with 64 goroutines each share a counter. If no permits come
// back, they get exactly the available permits. If some do, they never get more in any span, by the
// servers' clock, than the algorithm promises.
//
// For counters in this process, there is nothing to test.
func ExactAcrossProcesses(t *testing.T, e Engine) {
	if e.inProcess() {
		return
	}
	load, most := 200*time.Millisecond, 2000
	if long := os.Getenv(longEnv); long != "" {
		var err error
		if load, err = time.ParseDuration(long); err != nil {
			t.Fatalf("%s: %v", longEnv, err)
		}
		// About this many calls pass on a machine with two processors.
		most = max(most, int(load.Seconds()*20_000))
	}
	workers := startWorkers(t, workerCount)
	eachAlgorithm(t, func(t *testing.T, f facts) {
		t.Run("used up", func(t *testing.T) {
			most := min(most, f.largest)
			result := e.share(t, workers, job{Limit: f.lasting(most)})
			if len(result.Admitted) != most {
				t.Errorf("%d of %d permits passed", len(result.Admitted), most)
			}
		})
		t.Run("coming back", func(t *testing.T) {
			limit := core.Limit{Max: 50, Window: 100 * time.Millisecond, Algorithm: f.Algorithm}
			e.comingBack(t, f, workers, job{Limit: limit, For: load})
		})
		if f.leases {
			t.Run("leased", func(t *testing.T) { e.leasedAcross(t, f, workers, load) })
		}
	})
}

// leasedAcross makes every second process lease permits of a counter that the others use one by
// one. By the time of use, never more calls pass than allowed. Unused leased permits are back when
// the processes are done.
func (e Engine) leasedAcross(t *testing.T, f facts, workers []worker, load time.Duration) {
	const most = 8_000
	used := job{Limit: f.lasting(most), Lease: 500, Prefix: newPrefix()}
	result := e.share(t, workers, used)
	options := e.Options(t)
	options.Prefix = used.Prefix
	c := counter{t: t, limiter: newLimiter(t, options), name: "name", subject: "subject", limit: used.Limit}
	if passed := len(result.Admitted); passed > most || passed < most/2 {
		t.Errorf("%d of %d permits passed", passed, most)
	}
	c.wantLeft(most - len(result.Admitted))

	limit := core.Limit{Max: 800, Window: 100 * time.Millisecond, Algorithm: f.Algorithm}
	e.comingBack(t, f, workers, job{Limit: limit, Lease: 500, For: load})
}

// comingBack gives all workers a job on a limit whose permits come back, and checks every span. On a busy
// machine they may run for only a part of the time. If no permit came back, they get twice as much.
func (e Engine) comingBack(t *testing.T, f facts, workers []worker, j job) {
	t.Helper()
	result := e.share(t, workers, j)
	for ; len(result.Admitted) <= j.Limit.Max; result = e.share(t, workers, j) {
		if j.For *= 2; j.For > patient {
			t.Fatalf("%d permits passed in %v: none has come back", len(result.Admitted), j.For/2)
		}
	}
	wantSpans(t, f, j.Limit, result.Admitted)
	passed := len(result.Admitted)
	t.Logf("%d of %d calls passed in %v, of %d that could at most", passed, passed+result.Refused, j.For, f.most(j.Limit, j.For))
}

// share gives all workers a job at once, on a counter of its own, and adds up the results. If the
// job leases, every second worker does.
func (e Engine) share(t *testing.T, workers []worker, j job) (all done) {
	t.Helper()
	j.Engine, j.Addrs, j.Goroutines = e.Name, addrsOf(e.Servers), eachsGoroutines
	if j.Prefix == "" {
		j.Prefix = newPrefix()
	}
	var mu sync.Mutex
	together(len(workers), func(i int) {
		var result done
		j := j
		if i%2 == 1 {
			j.Lease = 0
		}
		err := firstOf(workers[i].jobs.Encode(j), workers[i].results.Decode(&result))
		mu.Lock()
		defer mu.Unlock()
		if err != nil || result.Error != "" {
			t.Errorf("worker %d: %v %s", i, err, result.Error)
		}
		all.Admitted = append(all.Admitted, result.Admitted...)
		all.Refused += result.Refused
	})
	return all
}

func addrsOf(servers []*redistest.Server) (addrs []string) {
	for _, server := range servers {
		addrs = append(addrs, server.Addr())
	}
	return addrs
}

// wantSpans checks spans of several lengths, at every possible beginning. It counts the permits of
// calls that both began and ended within the span, so slow calls cause no false alarm.
func wantSpans(t *testing.T, f facts, limit core.Limit, admitted []taken) {
	t.Helper()
	slices.SortFunc(admitted, func(a, b taken) int { return int(a.From - b.From) })
	for _, span := range []time.Duration{limit.Window / 4, limit.Window, 5 * limit.Window / 2, 24 * time.Hour} {
		length := min(span.Microseconds(), admitted[len(admitted)-1].To-admitted[0].From+1)
		most := f.most(limit, time.Duration(length)*time.Microsecond)
		for i := range admitted {
			within := int64(0)
			for _, a := range admitted[i:] {
				if a.From >= admitted[i].From+length {
					break
				}
				if a.To < admitted[i].From+length {
					within++
				}
			}
			if within > most {
				t.Fatalf("%d permits passed within %d microseconds, want at most %d by %v", within, length, most, limit)
			}
		}
	}
}
