package redistest

import (
	"bytes"
	"fmt"
	"os"
	"syscall"
)

// endWithParent has the kernel kill the program when the thread that started it is gone, so that no server is left behind by a
// test binary that was killed, or that panicked, and ran no cleanup.
func endWithParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}

// suspend asks the kernel to stop the process where it is; isSuspended tells when it has.
func suspend(p *os.Process) error { return p.Signal(syscall.SIGSTOP) }

// resume lets a suspended process run on.
func resume(p *os.Process) error { return p.Signal(syscall.SIGCONT) }

// isSuspended reads the state that follows the program's name in parentheses, which may itself hold parentheses.
func isSuspended(p *os.Process) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.Pid))
	if err != nil {
		return false
	}
	_, state, _ := bytes.Cut(stat[bytes.LastIndexByte(stat, ')')+1:], []byte(" "))
	return bytes.HasPrefix(state, []byte("T"))
}
