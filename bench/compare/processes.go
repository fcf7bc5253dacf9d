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

// processGoroutines is how many goroutines each process has.
const processGoroutines = 64

// processRivals are the rivals that are measured with several processes.
var processRivals = []string{rivals.TokenBucket, rivals.SlidingWindow, rivals.RedisRate, rivals.Ulule, rivals.Bare}

// job is the order to a worker.
type job struct {
	Rival, Workload string
	Place           rivals.Place
	Goroutines      int
	Quick           bool
}

// done is the report of a worker.
type done struct {
	Decisions, Allowed, Errors int64
	Took, ClientCPU            time.Duration
	Latency                    map[int]uint32
	FirstErr                   string
}

func (b *bench) processes() error {
	for range b.rounds {
		for _, i := range harness.Shuffled(len(processRivals)) {
			if err := b.visitWithProcesses(processRivals[i]); err != nil {
				return err
			}
		}
	}
	return nil
}

func (b *bench) visitWithProcesses(rival string) error {
	for _, name := range b.processPicks {
		w := workloadNamed(name)
		if _, err := b.loadStates(rival, w.limit, w.keys(b.settings)); err != nil {
			return err
		}
		for _, n := range b.settings.processes {
			outcome, err := b.runProcesses(n, job{rival, w.name, b.place(), processGoroutines, b.quick})
			if err != nil {
				return fmt.Errorf("%s, %d processes: %w", rival, n, err)
			}
			c := cell{w.name, rival, processGoroutines, n}
			b.outcomes[c] = append(b.outcomes[c], outcome)
		}
	}
	return nil
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
		if _, err := w.out.ReadString('\n'); err != nil { // it is ready
			return nil, err
		}
	}
	for _, w := range workers {
		if _, err := io.WriteString(w.in, "go\n"); err != nil {
			return nil, err
		}
	}
	time.Sleep(b.warm)
	before, err := b.server.Usage()
	if err != nil {
		return nil, err
	}
	time.Sleep(b.measure)
	after, err := b.server.Usage()
	if err != nil {
		return nil, err
	}
	o := &harness.Outcome{Server: after.Since(before)}
	for _, w := range workers {
		var d done
		if err := json.NewDecoder(w.out).Decode(&d); err != nil {
			return nil, err
		}
		o.Decisions, o.Allowed, o.Errors = o.Decisions+d.Decisions, o.Allowed+d.Allowed, o.Errors+d.Errors
		o.Took, o.ClientCPU = max(o.Took, d.Took), o.ClientCPU+d.ClientCPU
		o.Latency.AddSparse(d.Latency)
		if d.FirstErr != "" {
			o.FirstErr = d.FirstErr
		}
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
	return w, json.NewEncoder(w.in).Encode(j)
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
	s := full
	if j.Quick {
		s = short
	}
	w := workloadNamed(j.Workload)
	limiter, err := rivals.Find(j.Rival).Open(j.Place, w.limit)
	if err != nil {
		return err
	}
	defer limiter.Close()
	keys := harness.NewKeys("key", w.keys(s))
	load := harness.Load{Goroutines: j.Goroutines, Keys: keys, Picks: w.picks(keys.Len()), Warm: s.warm, Measure: s.measure, Every: 1}
	load.Picks = rotated(load.Picks, os.Getpid())
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
