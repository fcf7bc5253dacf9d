// Package limittest helps to test a service that limits access. It is for tests: neither core nor an
// adapter imports it.
//
// The page [Testing your service] shows how. Time is that of testing/synctest, [UseUp] makes a
// limiter refuse, and [StartRedis] and [NoRedis] make its store fail. The header RateLimit-Policy
// and [core.Guard.Rules] show the rules that guard a route.
//
// [Testing your service]: https://github.com/accesslimit/accesslimit/blob/main/core/limittest/TESTING.md
package limittest
