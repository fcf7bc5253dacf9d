package failure

import (
	"errors"
	"sync/atomic"
)

// Class is the kind of a failure. Its text appears in logs and metrics, so it must not change.
type Class string

// The classes. Core exports each of them as a StoreErrorClass.
const (
	Timeout      Class = "timeout"          // sent, and not answered in time
	Lost         Class = "connection_lost"  // the connection broke before the answer
	Unreachable  Class = "unreachable"      // no connection could be set up
	NoConnection Class = "no_connection"    // no connection, or no turn to be sent, came free in time
	NotReady     Class = "not_ready"        // the server says that it cannot serve the call now
	SlotMoving   Class = "slot_moving"      // a cluster is moving the slot of the call's keys
	BreakerOpen  Class = "breaker_open"     // not sent, because calls just before got no answer
	Refused      Class = "refused_by_redis" // the server has no room, or refuses us: somebody has to change something
	Foreign      Class = "foreign_value"    // a key of ours holds a value that we never wrote
	Unexpected   Class = "unexpected"       // a reply that no script of ours gives
)

// classes are all classes, in the order of Counts.
var classes = [...]Class{Timeout, Lost, Unreachable, NoConnection, NotReady, SlotMoving, BreakerOpen, Refused, Foreign, Unexpected}

// MayHaveCharged reports whether a call that failed in this way may have been charged. It may if it
// was sent and no readable answer came, or if the server may have stopped a script halfway because
// a right is missing.
func (c Class) MayHaveCharged() bool {
	return c == Timeout || c == Lost || c == Refused || c == Unexpected
}

// Answered reports whether the server answered, though not what it was asked for.
func (c Class) Answered() bool {
	return c == NotReady || c == SlotMoving || c == Refused || c == Foreign || c == Unexpected
}

// Lasting reports whether the failure lasts until somebody changes something.
func (c Class) Lasting() bool { return c == Refused || c == Foreign }

// ClassOf returns the class of a store's error.
func ClassOf(err error) Class {
	var known *Error
	if errors.As(err, &known) {
		return known.Class
	}
	return Unexpected
}

// ClassesOf returns the classes of a store's error: several if several servers failed.
func ClassesOf(err error) (classes []Class) {
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return []Class{ClassOf(err)}
	}
	for _, each := range joined.Unwrap() {
		classes = append(classes, ClassesOf(each)...)
	}
	return classes
}

// MayHaveActed reports whether an operation that failed may have been carried out.
func MayHaveActed(err error) bool { return err != nil && ClassOf(err).MayHaveCharged() }

// Counts counts failures by class. It is safe for concurrent use.
type Counts [len(classes)]atomic.Uint64

// Add counts a failure.
func (c *Counts) Add(err error) {
	class := ClassOf(err)
	for i := range classes {
		if classes[i] == class {
			c[i].Add(1)
		}
	}
}

// Each calls do for each class that occurred.
func (c *Counts) Each(do func(class Class, count uint64)) {
	for i := range classes {
		if n := c[i].Load(); n > 0 {
			do(classes[i], n)
		}
	}
}
