package redistest

import (
	"bytes"
	"os/exec"
	"runtime"
	"time"
)

// process is a running program that must not outlive the test binary.
type process struct {
	command *exec.Cmd
	output  bytes.Buffer  // complete and safe to read once ended is closed
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

// run starts the program and stays on one thread of its own until the program ends. Linux ties
// endWithParent to the thread that started the program, not to the process: if Go retired that
// thread, the kernel would kill a healthy server.
func (p *process) run(started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	err := p.command.Start()
	started <- err
	if err != nil {
		return
	}
	_ = p.command.Wait() // the error of a killed server means nothing
	close(p.ended)
}

// hasEnded reports whether the program is gone.
func (p *process) hasEnded() bool {
	select {
	case <-p.ended:
		return true
	default:
		return false
	}
}

// kill ends the program, even if it is suspended, and returns when it is gone. It does nothing if
// the program is gone.
func (p *process) kill() {
	_ = p.command.Process.Kill() // fails only if the program ended by itself
	<-p.ended
}

// WaitUntil calls ready every few milliseconds until it returns true, for at most the given time,
// and reports whether it did.
func WaitUntil(ready func() bool, atMost time.Duration) bool {
	for deadline := time.Now().Add(atMost); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		if ready() {
			return true
		}
	}
	return false
}
