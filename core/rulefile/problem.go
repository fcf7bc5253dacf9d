package rulefile

import (
	"errors"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/internal/ruleorigin"
)

// problemOf returns the problem that an error shows. Rules are wrong only if they were read.
func problemOf(err error) ruleorigin.Problem {
	var failed *core.StoreError
	switch {
	case errors.Is(err, errNoDocument):
		return ruleorigin.Missing
	case errors.Is(err, errLost), errors.Is(err, errOlder):
		return ruleorigin.Lost
	case errors.As(err, &failed) && failed.Class != core.StoreForeignValue, isUnread(err):
		return ruleorigin.Unread
	default:
		return ruleorigin.Wrong
	}
}

// isUnread reports whether an error only says that files cannot be read.
func isUnread(err error) bool {
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		var one *Error
		return errors.As(err, &one) && one.unread
	}
	for _, one := range joined.Unwrap() {
		if !isUnread(one) {
			return false
		}
	}
	return true
}

// The errors if Redis does not have the document: before the first version, after the document was
// lost, and after its latest version was lost.
var (
	errNoDocument = errors.New("rulefile: there is no document of this prefix in Redis yet: publish one by Document.Write")
	errLost       = errors.New("rulefile: Redis has lost the document: publish it again")
	errOlder      = errors.New("it lost the latest writes, or was restored; publish again")
)
