package redisstore

import (
	"fmt"
	"strings"

	"github.com/accesslimit/accesslimit/core/internal/failure"
)

// oldestVersion is the oldest version of Redis that supports the scripts.
const oldestVersion = "6.2"

// versionError is the error of a script on a server that is older than oldestVersion.
type versionError struct {
	version string // "" if INFO has not returned it yet, or our user may not call INFO
	cause   error
}

func (e *versionError) Error() string {
	found := "an older one"
	if e.version != "" {
		found = e.version
	}
	return fmt.Sprintf("Redis %s or later is required, and this is %s: %v", oldestVersion, found, e.cause)
}

func (e *versionError) Unwrap() error { return e.cause }

// isOlder reports whether a version of Redis is older than oldestVersion. It returns false for a
// version that cannot be parsed.
func isOlder(version string) bool {
	var major, minor int
	n, _ := fmt.Sscanf(version, "%d.%d", &major, &minor)
	return n == 2 && (major < 6 || major == 6 && minor < 2)
}

// explainTooOld returns an error with the version of the server if a script failed because the
// server is too old.
func (w *serverWatch) explainTooOld(err error) error {
	if w == nil || !strings.Contains(err.Error(), failure.TooOld) || classOf(err) != failure.Refused {
		return err
	}
	w.answered(false)
	old := &versionError{cause: err}
	if version := w.version.Load(); version != nil {
		old.version = *version
	}
	return old
}
