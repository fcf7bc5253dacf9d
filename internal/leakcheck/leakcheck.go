// Package leakcheck fails the tests of a package that leave a goroutine running.
package leakcheck

import "go.uber.org/goleak"

// Main runs the tests of a package and fails if a goroutine of theirs still runs afterwards. The
// options name goroutines that a library keeps on purpose.
//
//	func TestMain(m *testing.M) { leakcheck.Main(m) }
func Main(tests goleak.TestingM, keeps ...goleak.Option) { goleak.VerifyTestMain(tests, keeps...) }
