// Package limittest helps to test a service that limits access, and holds adapters to what they
// must do. It is for tests: neither core nor an adapter imports it.
//
// # Testing a service
//
// The page [Testing your service] shows how. Time is that of testing/synctest, [UseUp] makes a
// limiter refuse, and [StartRedis] and [NoRedis] make its store fail. The header RateLimit-Policy
// and [core.Guard.Rules] show the rules that guard a route.
//
// # Testing an adapter
//
// An adapter shows the core a [core.View] of each call and carries out its [core.Answer]. The
// example of this package is one for a made-up framework, in about eighty lines. Its function serve
// is for the test: it serves an [App] with the framework, through the adapter. The test calls
// [Run]:
//
//	func TestToy(t *testing.T) { limittest.Run(t, limittest.Adapter{Serve: serve}) }
//
// Run first makes one call for each part of the contract. If one fails, Run reports the method of
// the View, what it returned and what it should have returned, and ends. Then it holds the adapter
// to about a hundred scenarios, in process and with a real Redis. Every wait is bounded.
//
// [Adapter].Cannot names what a framework cannot do, each [Feature] with the reason. [RunPaths] and
// [FuzzPaths] test other configurations of the framework's router.
//
// [Testing your service]: https://github.com/accesslimit/accesslimit/blob/main/core/limittest/TESTING.md
package limittest
