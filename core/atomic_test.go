package core_test

import (
	"sync"
	"sync/atomic"
)

// atOnceBy runs a function in so many goroutines at once and returns how often it returned true.
func atOnceBy(callers int, do func(caller int) bool) (yes int) {
	var all sync.WaitGroup
	var said atomic.Int32
	begin := make(chan struct{})
	for caller := range callers {
		all.Go(func() {
			<-begin
			if do(caller) {
				said.Add(1)
			}
		})
	}
	close(begin)
	all.Wait()
	return int(said.Load())
}
