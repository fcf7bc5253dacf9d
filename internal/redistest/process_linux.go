package redistest

import (
	"bytes"
	"fmt"
	"os"
	"syscall"
)

// endWithParent makes the kernel kill the program when the thread that started it is gone. So a
// test binary that was killed or panicked, and therefore ran no cleanup, leaves no server behind.
func endWithParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}

// suspend asks the kernel to stop the process. isSuspended reports when it has stopped.
func suspend(p *os.Process) error { return p.Signal(syscall.SIGSTOP) }

// resume continues a suspended process.
func resume(p *os.Process) error { return p.Signal(syscall.SIGCONT) }

// isSuspended reads the state from behind the program's name, which is in parentheses and may
// itself contain some.
func isSuspended(p *os.Process) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.Pid))
	if err != nil {
		return false
	}
	_, state, _ := bytes.Cut(stat[bytes.LastIndexByte(stat, ')')+1:], []byte(" "))
	return bytes.HasPrefix(state, []byte("T"))
}
