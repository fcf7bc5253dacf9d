package limittest

import "go.uber.org/goleak"

// Main runs the tests of a package, and fails when they are over and a goroutine of theirs still runs. Options name those that
// a library keeps on purpose.
//
//	func TestMain(m *testing.M) { limittest.Main(m) }
func Main(tests goleak.TestingM, keeps ...goleak.Option) { goleak.VerifyTestMain(tests, keeps...) }
