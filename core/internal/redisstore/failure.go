package redisstore

import (
	"errors"
	"fmt"
	"time"

	"github.com/accesslimit/accesslimit/core/internal/failure"
)

// ErrForeign is the error of a call for a key of ours that holds a value which we never wrote.
var ErrForeign = errors.New("a key of this limiter holds something else, which is left as it is; " +
	"choose a Prefix that nobody else writes to, or remove the key")

// These errors end calls that were not sent, and so not charged.
var (
	// errBreakerOpen is returned at once while a breaker is open.
	errBreakerOpen = errors.New("not asked: the server did not answer before, and is tried again within a second")
	// errNoTurn ends a call that waited in a lane for the calls before it.
	errNoTurn = errors.New("no turn came in time, because the calls before it were not answered yet")
	// errNoConnection ends a call in a lane that got no connection.
	errNoConnection = errors.New("no connection came in time")
	// errNoSetUp is the cause of an unreached command if nothing more is known.
	errNoSetUp = errors.New("no connection could be set up")
	// errNoSlots is the cause of an unreached command if no server tells which master to ask.
	errNoSlots = errors.New("no server of the cluster tells which slots it has")
)

// errNoAnswer ends a call in a lane that was sent, and may have been charged.
var errNoAnswer error = unanswered{errors.New("nothing came back")}

// unanswered is the error of a call whose caller's context ended while it waited. It may have been
// charged.
type unanswered struct{ end error }

func (u unanswered) Error() string { return u.end.Error() }

func (u unanswered) Unwrap() error { return u.end }

// unreached is the error of a command that was not sent, because no connection could be set up.
type unreached struct {
	cause error
	ended bool // because the call's time was over
}

func (u *unreached) Error() string { return u.cause.Error() }

func (u *unreached) Unwrap() error { return u.cause }

// toFailure returns the failure that an error means. It names our own timeout if that ended the
// call. It wraps no error of a context, because only the caller's own context ends with one.
func toFailure(err error, timeout time.Duration) *failure.Error {
	var known *failure.Error
	if errors.As(err, &known) {
		return known
	}
	switch class := classOf(err); {
	case isTimeUp(err):
		return failure.NoAnswer(class, timeout, err)
	case isContextError(err): // net's error for a dial's own timeout is one
		return &failure.Error{Class: class, Err: errors.New(failure.Text(err))}
	default:
		return &failure.Error{Class: class, Err: err}
	}
}

// isTimeUp reports whether a trip ended because its time was over.
func isTimeUp(err error) bool {
	var u *unreached
	if errors.As(err, &u) {
		return u.ended
	}
	class := classOf(err)
	return class == failure.Timeout || class == failure.NoConnection
}

// nameForeignKeys adds the keys of a script to its error if it met a value that we never wrote.
func nameForeignKeys(err error, keys func() []string) error {
	if classOf(err) != failure.Foreign {
		return err
	}
	return fmt.Errorf("%w: one of %q: %w", ErrForeign, keys(), err)
}
