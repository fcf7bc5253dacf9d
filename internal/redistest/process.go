package redistest

import (
	"bytes"
	"os/exec"
	"runtime"
	"time"
)

// process is one run of a program that must not outlive the test binary.
type process struct {
	command *exec.Cmd
	output  bytes.Buffer  // complete, and safe to read, once ended is closed
	ended   chan struct{} // closed when the program is gone and has been waited for
}

// launch starts the program and returns once it runs.
func launch(program string, args ...string) (*process, error) {
	p := &process{command: exec.Command(program, args...), ended: make(chan struct{})}
	p.command.Stdout, p.command.Stderr = &p.output, &p.output
	p.command.SysProcAttr = endWithParent()
	started := make(chan error)
	go p.run(started)
	return p, <-started
}

// run starts the program and stays with it to its end on one thread of its own. Linux ties endWithParent to the thread that
// started the program, not to the process: a thread that Go retires meanwhile would take a healthy server with it.
func (p *process) run(started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	err := p.command.Start()
	started <- err
	if err != nil {
		return
	}
	_ = p.command.Wait() // how a server ends that is only ever killed says nothing
	close(p.ended)
}

// hasEnded tells whether the program is gone.
func (p *process) hasEnded() bool {
	select {
	case <-p.ended:
		return true
	default:
		return false
	}
}

// kill ends the program, a suspended one too, and returns when it is gone. A program that is gone already stays so.
func (p *process) kill() {
	_ = p.command.Process.Kill() // fails only if the program ended by itself
	<-p.ended
}

// WaitUntil asks ready every few milliseconds until it says yes, for at most the given time, and tells whether it did.
func WaitUntil(ready func() bool, atMost time.Duration) bool {
	for deadline := time.Now().Add(atMost); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		if ready() {
			return true
		}
	}
	return false
}
