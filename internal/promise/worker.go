package promise

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/internal/bounded"
)

// workerEnv names an environment variable that turns any test binary which imports this package
// into a worker: a process that does jobs.
const workerEnv = "ACCESSLIMIT_TEST_WORKER"

func init() {
	if os.Getenv(workerEnv) != "" {
		work(os.Stdin, os.Stdout)
		os.Exit(0)
	}
}

// job is a task of a worker: many goroutines use one counter until it is used up, or for some time.
type job struct {
	Engine     string // the name of one of Engines
	Addrs      []string
	Prefix     string
	Limit      core.Limit
	Goroutines int
	For        time.Duration // 0: until the counter is used up
	Lease      int           // the Lease of the rule; 0: direct calls by a handle
}

// done is the result of a job.
type done struct {
	Admitted []taken // each permit that passed
	Refused  int
	Error    string
}

// taken is the time at which a permit passed: between From and To, in microseconds since the epoch.
// The servers run on the same machine, so they have the same clock.
type taken struct{ From, To int64 }

// work does a job for each line of its input. The input ends when the test has ended or died.
func work(in io.Reader, out io.Writer) {
	jobs, results := json.NewDecoder(in), json.NewEncoder(out)
	for {
		var j job
		if jobs.Decode(&j) != nil {
			return
		}
		if results.Encode(j.do()) != nil {
			return
		}
	}
}

// client returns a client of the job's engine.
func (j job) client() redis.UniversalClient {
	switch j.Engine {
	case "cluster":
		return redis.NewClusterClient(&redis.ClusterOptions{Addrs: j.Addrs})
	case "ring":
		return redis.NewRing(&redis.RingOptions{Addrs: shards(j.Addrs)})
	default:
		return redis.NewClient(&redis.Options{Addr: j.Addrs[0]})
	}
}

// shards returns the servers of a ring under the names that Ring.Client gives them. The names
// decide which keys are where.
func shards(addrs []string) map[string]string {
	named := make(map[string]string)
	for i, addr := range addrs {
		named[fmt.Sprintf("shard%d", i)] = addr
	}
	return named
}

func (j job) do() (all done) {
	client := j.client()
	defer func() { _ = client.Close() }()
	limiter, err := core.New(core.Options{Redis: client, Prefix: j.Prefix, Timeout: patient, Logger: silent})
	if err != nil {
		return done{Error: err.Error()}
	}
	defer limiter.Close()
	allow := func() (bool, error) {
		d, err := limiter.MustCounter("name", j.Limit).Allow(context.Background(), "subject")
		return d.Allowed, err
	}
	if j.Lease > 0 {
		allow = j.leased(limiter)
	}
	var mu sync.Mutex
	together(j.Goroutines, func(int) {
		own := j.ask(allow)
		mu.Lock()
		defer mu.Unlock()
		all.Admitted = append(all.Admitted, own.Admitted...)
		all.Refused += own.Refused
		all.Error += own.Error
	})
	return all
}

// leased returns a function that uses the counter through a rule that leases.
func (j job) leased(limiter *core.Limiter) func() (bool, error) {
	rule := ruleOf("name", j.Limit)
	rule.Lease, rule.OnStoreError = j.Lease, core.FailClosed
	rule.Key = func(core.Request) (string, error) { return "subject", nil }
	guard := limiter.MustGuard(rule)
	return func() (bool, error) {
		answer := guard.Check(callBy(context.Background(), "caller"))
		if answer.Refusal == nil {
			return true, nil
		}
		if reason := answer.Refusal.Decision.Reason; reason != core.LimitExceeded {
			return false, fmt.Errorf("refused because of %s", reason)
		}
		return false, nil
	}
}

// ask does one goroutine's part of the job.
func (j job) ask(allow func() (bool, error)) (own done) {
	for begin := time.Now(); !j.over(begin, own); {
		from := time.Now().UnixMicro()
		allowed, err := allow()
		switch {
		case err != nil:
			own.Error = err.Error()
			return own
		case allowed:
			own.Admitted = append(own.Admitted, taken{from, time.Now().UnixMicro()})
		default:
			own.Refused++
		}
	}
	return own
}

// over reports whether a goroutine has done its part. If the job lasts for some time, each
// goroutine makes at least a few calls, so that the job is not empty on a busy machine.
func (j job) over(begin time.Time, own done) bool {
	if j.For == 0 {
		return own.Refused >= 5
	}
	return time.Since(begin) >= j.For && len(own.Admitted)+own.Refused >= 20
}

// worker is a worker process, as seen by the test.
type worker struct {
	jobs    *json.Encoder
	results *json.Decoder
}

// startWorkers starts worker processes that end with the test.
func startWorkers(t *testing.T, n int) (workers []worker) {
	t.Helper()
	for range n {
		process := exec.Command(os.Args[0])
		// If a worker finds a race, it fails, but without the second that the race detector would
		// wait at the end.
		process.Env = append(os.Environ(), workerEnv+"=1", "GORACE="+os.Getenv("GORACE")+" atexit_sleep_ms=0")
		process.Stderr = os.Stderr
		in, err := process.StdinPipe()
		out, err2 := process.StdoutPipe()
		if err := firstOf(err, err2, process.Start()); err != nil {
			t.Fatal(err)
		}
		bounded.Cleanup(t, func() {
			_ = in.Close() // the end of its input ends the worker
			if err := bounded.Wait(process); err != nil {
				t.Errorf("a worker ended with %v", err)
			}
		})
		workers = append(workers, worker{json.NewEncoder(in), json.NewDecoder(bufio.NewReader(out))})
	}
	return workers
}
