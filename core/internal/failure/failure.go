// Package failure says why a store did not answer, and whether the caller or the store ended a
// call.
package failure

import (
	"context"
	"fmt"
	"strings"
	"time"
)

// Error is the reason why a call got no answer. It wraps no error of a context: only the caller's
// own context ends with one.
type Error struct {
	Class Class
	Err   error
}

// Error implements error. The text is bounded, because the server chooses it.
func (e *Error) Error() string { return Text(e.Err) }

// maxText is the length of the longest text of an error, in bytes. The reason comes first in the
// errors of servers.
const maxText = 1000

// Text returns the text of an error, cut off if it is long.
func Text(err error) string {
	text := err.Error()
	if len(text) <= maxText {
		return text
	}
	end := fmt.Sprintf("... (%d bytes)", len(text))
	return strings.ToValidUTF8(text[:maxText-len(end)], "") + end
}

// Unwrap implements errors.Unwrap.
func (e *Error) Unwrap() error { return e.Err }

// NoAnswer returns the failure of a call whose time is over.
func NoAnswer(class Class, timeout time.Duration, cause error) *Error {
	return &Error{class, fmt.Errorf("no answer within %v: %v", timeout, cause)}
}

// CallersEnd returns the error of a context that has ended, or nil. A socket's deadline can pass a
// moment before the context's own timer fires, so it also compares the time.
func CallersEnd(caller context.Context) error {
	if ended := caller.Err(); ended != nil {
		return ended
	}
	if at, ok := caller.Deadline(); ok && !time.Now().Before(at) {
		return context.DeadlineExceeded
	}
	return nil
}
