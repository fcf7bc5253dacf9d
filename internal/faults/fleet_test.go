package faults_test

import (
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/accesslimit/accesslimit/internal/bounded"
)

// fleet is processes of a service that share a Redis.
type fleet struct {
	t         *testing.T
	processes []*process

	mutex   sync.Mutex
	reports map[string]int // how often each threshold was reported
}

// process is one of a fleet.
type process struct {
	fleet   *fleet
	command *exec.Cmd
	stdin   io.WriteCloser
	tallies chan *tally // those of its rounds, and at last that of its end
}

// newFleet starts three processes whose limiters have this Timeout.
func newFleet(t *testing.T, addr string, within time.Duration) *fleet {
	t.Helper()
	f := &fleet{t: t, reports: make(map[string]int)}
	for range 3 {
		f.processes = append(f.processes, f.start(addr, within))
	}
	return f
}

func (f *fleet) start(addr string, within time.Duration) *process {
	f.t.Helper()
	p := &process{fleet: f, command: exec.Command(os.Args[0]), tallies: make(chan *tally, 4)} // room for those that nobody waits for
	// Otherwise the race detector makes each process wait for a second before it ends.
	p.command.Env = append(os.Environ(), memberOf+"="+addr, memberTimeout+"="+within.String(), "GORACE=atexit_sleep_ms=0")
	p.command.Stderr = os.Stderr
	stdout, err := p.command.StdoutPipe()
	if err == nil {
		p.stdin, err = p.command.StdinPipe()
	}
	if err == nil {
		err = p.command.Start()
	}
	if err != nil {
		f.t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		p.hear(stdout)
		_ = p.command.Wait()
	}()
	bounded.Cleanup(f.t, func() {
		p.kill()
		<-ended
	})
	return p
}

// hear receives what the process says until it ends.
func (p *process) hear(stdout io.Reader) {
	defer close(p.tallies)
	for messages := json.NewDecoder(stdout); ; {
		var m told
		if messages.Decode(&m) != nil {
			return
		}
		if m.Tally != nil {
			p.tallies <- m.Tally
			continue
		}
		p.fleet.mutex.Lock()
		p.fleet.reports[m.Threshold]++
		p.fleet.mutex.Unlock()
	}
}

// begin makes the process begin a round.
func (p *process) begin(r round) {
	p.fleet.t.Helper()
	if err := json.NewEncoder(p.stdin).Encode(r); err != nil {
		p.fleet.t.Fatal(err)
	}
}

// leave tells the process to end in order.
func (p *process) leave() { _ = p.stdin.Close() }

// kill ends the process at once.
func (p *process) kill() { _ = p.command.Process.Kill() }

// signal sends STOP or CONT.
func (p *process) signal(name string) {
	p.fleet.t.Helper()
	if out, err := exec.Command("kill", "-"+name, strconv.Itoa(p.command.Process.Pid)).CombinedOutput(); err != nil {
		p.fleet.t.Errorf("kill -%s: %v: %s", name, err, out)
	}
}

// result waits for the end of a round, or of the process, and returns what it counted.
func (p *process) result() *tally {
	p.fleet.t.Helper()
	counted, ok := <-p.tallies
	if !ok {
		p.fleet.t.Fatal("a process ended too early")
	}
	counted.wantPolicies(p.fleet.t)
	return counted
}

// end ends all processes, which must leave no goroutine.
func (f *fleet) end() {
	f.t.Helper()
	for _, p := range f.processes {
		p.leave()
	}
	for _, p := range f.processes {
		if last := p.result(); last.Leaked != "" {
			f.t.Error(last.Leaked)
		}
	}
}

// wantPolicies checks that Redis or the rules' policies gave every answer.
func (c *tally) wantPolicies(t *testing.T) {
	t.Helper()
	if c.Wrong != "" {
		t.Error(c.Wrong)
	}
}
