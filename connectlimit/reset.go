//go:build !plan9

package connectlimit

import (
	"errors"
	"syscall"
)

// isReset reports whether the system says that the caller ended the connection.
func isReset(err error) bool {
	return errors.Is(err, syscall.EPIPE) || errors.Is(err, syscall.ECONNRESET)
}
