// Package failure says why a store did not answer, and whether the caller or the store ended a
// call.
package failure

import (
	"context"
	"fmt"
	"time"
)

// Error is the reason why a call got no answer. It wraps no error of a context: only the caller's
// own context ends with one.
type Error struct {
	Class Class
	Err   error
}

// Error implements error.
func (e *Error) Error() string { return e.Err.Error() }

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
