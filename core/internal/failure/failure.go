// Package failure is why a store does not answer, and whose end that is.
package failure

import (
	"context"
	"fmt"
	"time"
)

// Error is why a call got no answer. It leads to no context's error: that is only ever the caller's.
type Error struct {
	Class Class
	Err   error
}

// Error implements error.
func (e *Error) Error() string { return e.Err.Error() }

// Unwrap implements errors.Unwrap.
func (e *Error) Unwrap() error { return e.Err }

// Class is the kind of a failure.
type Class int

// The classes; core tells after which of them a call may have been charged.
const (
	Timeout      Class = iota // asked, and not answered in time
	Lost                      // the connection broke while the answer was awaited
	Unreachable               // no connection could be set up
	NoConnection              // no connection, or no place in a pipeline, came free in time
	NotReady                  // the server says that it cannot at the moment
	BreakerOpen               // not asked, because others got no answer
	Refused                   // the server says that we may not, or has no room: somebody has to change something
	Foreign                   // a key of ours holds what we never wrote
	Unexpected                // an answer that the script does not give
	Classes                   // how many there are
)

// NoAnswer is the failure of a class that ends with the time which a call has.
func NoAnswer(class Class, timeout time.Duration, cause error) *Error {
	return &Error{class, fmt.Errorf("no answer within %v: %v", timeout, cause)}
}

// CallersEnd is the error of a context that has ended; nil while it goes on. A socket's deadline can pass a moment before
// the context's own timer fires, so the time is looked at too.
func CallersEnd(caller context.Context) error {
	if ended := caller.Err(); ended != nil {
		return ended
	}
	if at, ok := caller.Deadline(); ok && !time.Now().Before(at) {
		return context.DeadlineExceeded
	}
	return nil
}
