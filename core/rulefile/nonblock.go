//go:build !wasm

package rulefile

import "syscall"

// nonBlock keeps open from waiting for the writer of a FIFO.
const nonBlock = syscall.O_NONBLOCK
