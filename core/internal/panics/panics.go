// Package panics keeps a panic in a goroutine of this library from ending the process.
//
// Guard makes the function of every go statement, of every timer, and of everything else that runs
// in its own goroutine. A test checks this.
package panics

import (
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
)

// Error is the error that a panic becomes.
type Error struct {
	Value any
	Stack []byte // of the goroutine that panicked
}

// Error implements error.
func (e *Error) Error() string { return fmt.Sprintf("panic: %v", e.Value) }

// Catch runs a function, and returns its error, or an *Error if it panics.
func Catch(do func() error) (err error) {
	defer func() {
		if value := recover(); value != nil {
			err = &Error{value, debug.Stack()}
		}
	}()
	return do()
}

// Guard returns a function that runs do. If do panics, it calls failed with an *Error. A caller
// that waits for do must be released by failed, or by a deferred call within do.
func Guard(do func(), failed func(err error)) func() {
	return func() {
		err := Catch(func() error {
			do()
			return nil
		})
		if err != nil {
			failed(err)
		}
	}
}

// Result is Guard for a function with a result, which returns the *Error.
func Result[T any](do func() (T, error)) func() (T, error) {
	return func() (result T, err error) {
		err = Catch(func() (err error) {
			result, err = do()
			return err
		})
		return result, err
	}
}

// Is reports whether an error comes from a panic.
func Is(err error) bool {
	if err == nil {
		return false
	}
	var panicked *Error // declared here, because the declaration allocates
	return errors.As(err, &panicked)
}

// StackOf returns the stack of the panic that an error comes from, or "".
func StackOf(err error) string {
	var panicked *Error
	if errors.As(err, &panicked) {
		return string(panicked.Stack)
	}
	return ""
}

// Log logs a panic with its stack, for tasks that have no other log.
func Log(err error) {
	slog.Default().Error("accesslimit: a panic was caught", slog.Any("error", err), slog.String("stack", StackOf(err)))
}
