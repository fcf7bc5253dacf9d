package redisstore

import (
	"fmt"
	"strings"

	"github.com/accesslimit/accesslimit/core/internal/failure"
)

// oldest is the oldest version of Redis that supports the scripts.
const oldestVersion = "6.2"

// syntaxError is the reply of an older server to SET with PXAT in a script.
const syntaxError = "ERR syntax error"

// tooOld is the failure of a server older than that.
type versionError struct {
	version string // "" until INFO has returned it, or if our user may not call that
	cause   error
}

func (t *versionError) Error() string {
	found := "an older one"
	if t.version != "" {
		found = t.version
	}
	return fmt.Sprintf("Redis %s or later is required, and this is %s: %v", oldestVersion, found, t.cause)
}

func (t *versionError) Unwrap() error { return t.cause }

// isOlder reports whether a version of Redis is older than oldest. One that cannot be parsed is
// not.
func isOlder(version string) bool {
	var major, minor int
	n, _ := fmt.Sscanf(version, "%d.%d", &major, &minor)
	return n == 2 && (major < 6 || major == 6 && minor < 2)
}

// explain returns an error with the version of the server if a script failed because the server is
// too old.
func (w *serverWatch) explainTooOld(err error) error {
	if w == nil || !strings.Contains(err.Error(), syntaxError) || classOf(err) != failure.Refused {
		return err
	}
	w.answered(false)
	old := &versionError{cause: err}
	if version := w.version.Load(); version != nil {
		old.version = *version
	}
	return old
}
