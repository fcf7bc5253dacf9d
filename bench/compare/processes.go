package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"time"

	"github.com/accesslimit/accesslimit/bench/internal/harness"
	"github.com/accesslimit/accesslimit/bench/rivals"
)

// Several processes share the counters, as those of a service do. Each runs this program again.

// The number of goroutines of each process, and the time in which it opens its connections.
const (
	processGoroutines = 64
	processWarm       = 150 * time.Millisecond
)

// processRivals are the rivals that are measured with several processes.
var processRivals = []string{rivals.TokenBucket, rivals.SlidingWindow, rivals.RedisRate, rivals.Ulule, rivals.Bare}

// job is the order to a worker.
type job struct {
	Rival, Workload string
	Place           rivals.Place
	Goroutines      int
	Keys            int
	Warm, Measure   time.Duration
}

// done is the report of a worker.
type done struct {
	Decisions, Allowed, Errors int64
	Took, ClientCPU            time.Duration
	Latency                    map[int]uint32
	FirstErr                   string
}

// addTo adds a worker's report to an outcome.
func (d done) addTo(o *harness.Outcome) {
	o.Decisions, o.Allowed, o.Errors = o.Decisions+d.Decisions, o.Allowed+d.Allowed, o.Errors+d.Errors
	o.Took, o.ClientCPU = max(o.Took, d.Took), o.ClientCPU+d.ClientCPU
	o.Latency.AddSparse(d.Latency)
	if d.FirstErr != "" {
		o.FirstErr = d.FirstErr
	}
}

// processRun is one measurement of several processes.
type processRun struct {
	workload  workload
	processes int
}

func (b *bench) processes() error {
	jobs, err := b.processJobs()
	if err != nil {
		return err
	}
	var runs []processRun
	for _, name := range b.processPicks {
		for _, n := range b.settings.processes {
			runs = append(runs, processRun{workloadNamed(name), n})
		}
	}
	for range b.processRounds {
		for _, i := range harness.Shuffled(len(runs)) {
			for _, k := range harness.Shuffled(len(processRivals)) {
				run, rival := runs[i], processRivals[k]
				c := cell{run.workload.name, rival, processGoroutines, run.processes}
				outcome, err := b.runProcesses(run.processes, jobs[c.workload+rival])
				if err != nil {
					return fmt.Errorf("%s, %d processes: %w", rival, run.processes, err)
				}
				b.outcomes[c] = append(b.outcomes[c], outcome)
			}
		}
	}
	return nil
}

// processJobs returns the jobs by the names of workload and rival. Each has a database of its own,
// with a live state of every key.
func (b *bench) processJobs() (map[string]job, error) {
	if err := b.server.Flush(); err != nil {
		return nil, err
	}
	jobs := make(map[string]job)
	for _, name := range b.processPicks {
		for _, rival := range processRivals {
			w, place := workloadNamed(name), placeOn(b.server, len(jobs))
			keys := w.keys(b.settings)
			if err := b.loadStates(rival, w.limit, place, keys); err != nil {
				return nil, err
			}
			jobs[name+rival] = job{rival, name, place, processGoroutines, keys, processWarm, b.processMeasure}
		}
	}
	return jobs, nil
}

// runProcesses has n workers do a job at the same time and adds up their reports.
func (b *bench) runProcesses(n int, j job) (*harness.Outcome, error) {
	workers := make([]*worker, n)
	for i := range workers {
		w, err := startWorker(j)
		if err != nil {
			return nil, err
		}
		workers[i] = w
		defer w.stop()
	}
	for _, w := range workers {
		if err := w.begin(); err != nil {
			return nil, err
		}
	}
	time.Sleep(j.Warm)
	before, err := b.server.Usage()
	if err != nil {
		return nil, err
	}
	time.Sleep(j.Measure)
	after, err := b.server.Usage()
	if err != nil {
		return nil, err
	}
	o := &harness.Outcome{Server: after.Since(before)}
	for _, w := range workers {
		d, err := w.report()
		if err != nil {
			return nil, err
		}
		d.addTo(o)
	}
	return o, nil
}

// worker is a process that does a job.
type worker struct {
	process *exec.Cmd
	in      io.WriteCloser
	out     *bufio.Reader
}

func startWorker(j job) (*worker, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	w := &worker{process: exec.Command(program, "-worker")}
	w.process.Stderr = os.Stderr
	if w.in, err = w.process.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := w.process.StdoutPipe()
	if err != nil {
		return nil, err
	}
	w.out = bufio.NewReader(out)
	if err := w.process.Start(); err != nil {
		return nil, err
	}
	err = json.NewEncoder(w.in).Encode(j)
	if err == nil {
		_, err = w.out.ReadString('\n') // it is ready
	}
	if err != nil {
		w.stop()
	}
	return w, err
}

// begin gives the signal to start.
func (w *worker) begin() error {
	_, err := io.WriteString(w.in, "go\n")
	return err
}

// report waits for the end of the job.
func (w *worker) report() (d done, err error) {
	err = json.NewDecoder(w.out).Decode(&d)
	return d, err
}

func (w *worker) stop() {
	_ = w.in.Close()
	_ = w.process.Process.Kill()
	_ = w.process.Wait()
}

// work is the main function of a worker. It reads a job, reports that it is ready, waits for the
// signal to start, does the job and writes its report.
func work(in io.Reader, out io.Writer) error {
	lines := bufio.NewReader(in)
	text, err := lines.ReadBytes('\n')
	if err != nil {
		return err
	}
	var j job
	if err := json.Unmarshal(text, &j); err != nil {
		return err
	}
	w := workloadNamed(j.Workload)
	limiter, err := rivals.Find(j.Rival).Open(j.Place, w.limit)
	if err != nil {
		return err
	}
	defer limiter.Close()
	keys := harness.NewKeys("key", j.Keys)
	load := harness.Load{
		Goroutines: j.Goroutines, Keys: keys, Picks: rotated(w.picks(keys.Len()), os.Getpid()),
		Warm: j.Warm, Measure: j.Measure, Every: 1,
	}
	fmt.Fprintln(out, "ready")
	if _, err := lines.ReadString('\n'); err != nil {
		return err
	}
	o, err := harness.Loop(limiter.Allow, load, nil)
	if err != nil {
		return err
	}
	return json.NewEncoder(out).Encode(done{
		o.Decisions, o.Allowed, o.Errors, o.Took, o.ClientCPU, o.Latency.Sparse(), o.FirstErr,
	})
}

// rotated starts at another place in the picks, so that processes do not call the same keys in
// the same order.
func rotated(picks []uint32, by int) []uint32 {
	at := by * 7919 % len(picks)
	return slices.Concat(picks[at:], picks[:at])
}
