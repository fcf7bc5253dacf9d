// Package leakcheck fails the tests of a package that leave a goroutine running.
package leakcheck

import (
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	"go.uber.org/goleak"
)

// patience is how long goroutines may continue after the tests. Some end by themselves: go-redis
// looks once a second for a server that was killed, until it notices that its client is closed.
const patience = time.Minute

// Main runs the tests of a package and fails if one of their goroutines still runs afterwards. The
// options name goroutines that a library keeps on purpose.
//
//	func TestMain(m *testing.M) { leakcheck.Main(m) }
func Main(tests goleak.TestingM, keeps ...goleak.Option) {
	code := tests.Run()
	for _, end := range slices.Backward(ends) {
		end()
	}
	if code == 0 {
		if err := findLeak(keeps); err != nil {
			fmt.Fprintln(os.Stderr, "leakcheck:", err)
			code = 1
		}
	}
	os.Exit(code)
}

// ends are the functions of AtEnd.
var (
	mutex sync.Mutex
	ends  []func()
)

// AtEnd makes Main call a function after the last test, before it looks for goroutines. The latest
// function is called first.
func AtEnd(end func()) {
	mutex.Lock()
	defer mutex.Unlock()
	ends = append(ends, end)
}

// findLeak returns an error with the goroutines that do not end.
func findLeak(keeps []goleak.Option) (err error) {
	for end := time.Now().Add(patience); time.Now().Before(end); { // Find itself waits between its looks
		if err = goleak.Find(keeps...); err == nil {
			break
		}
	}
	return err
}
