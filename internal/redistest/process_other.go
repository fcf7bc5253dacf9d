//go:build !linux

package redistest

import (
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
)

// endWithParent does nothing: only Linux can do this. Elsewhere a test binary that is killed may
// leave its servers behind.
func endWithParent() *syscall.SysProcAttr { return nil }

// suspend asks the kernel to stop the process. isSuspended reports when it has stopped. It runs
// kill(1), because package syscall has no name for the signal on Windows, where this file must
// compile too.
func suspend(p *os.Process) error { return exec.Command("kill", "-STOP", strconv.Itoa(p.Pid)).Run() }

// resume lets a suspended process run on.
func resume(p *os.Process) error { return exec.Command("kill", "-CONT", strconv.Itoa(p.Pid)).Run() }

// isSuspended asks ps(1), which all Unixes have.
func isSuspended(p *os.Process) bool {
	state, err := exec.Command("ps", "-o", "state=", "-p", strconv.Itoa(p.Pid)).Output()
	return err == nil && strings.HasPrefix(strings.TrimSpace(string(state)), "T")
}
