//go:build !plan9

package redisstore

import (
	"errors"
	"syscall"
)

// isReset reports whether the system says that the other side ended a connection.
func isReset(err error) bool {
	return errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}
