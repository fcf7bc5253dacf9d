package main

import (
	"errors"
	"sync"
)

// callers is the number of goroutines that call at once.
const callers = 16

// together runs do in all callers at once.
func together(do func(caller int) error) error {
	failed := make([]error, callers)
	var all sync.WaitGroup
	for caller := range callers {
		all.Go(func() { failed[caller] = do(caller) })
	}
	all.Wait()
	return errors.Join(failed...)
}
