//go:build !linux

package redistest

import (
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
)

// endWithParent is a promise that only Linux can keep. Elsewhere a killed test binary may leave its servers behind.
func endWithParent() *syscall.SysProcAttr { return nil }

// suspend asks the kernel to stop the process where it is; isSuspended tells when it has. It runs kill(1), because the signal
// has no name in package syscall on Windows, where this file must compile all the same.
func suspend(p *os.Process) error { return exec.Command("kill", "-STOP", strconv.Itoa(p.Pid)).Run() }

// resume lets a suspended process run on.
func resume(p *os.Process) error { return exec.Command("kill", "-CONT", strconv.Itoa(p.Pid)).Run() }

// isSuspended asks ps(1), the one way that all the Unixes share.
func isSuspended(p *os.Process) bool {
	state, err := exec.Command("ps", "-o", "state=", "-p", strconv.Itoa(p.Pid)).Output()
	return err == nil && strings.HasPrefix(strings.TrimSpace(string(state)), "T")
}
