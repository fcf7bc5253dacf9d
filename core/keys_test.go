package core_test

import (
	"fmt"
	"testing"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/adapter"
)

// wantApart checks that of two callers with one call each, neither is charged for the other's.
func wantApart(t *testing.T, guard *core.Guard, one, other adapter.View) {
	t.Helper()
	wantStatus(t, guard, one, 200)
	wantStatus(t, guard, other, 200)
	wantStatus(t, guard, one, 429)
	wantStatus(t, guard, other, 429)
}

// API keys that differ in case shared a bucket, because header values were lower-cased.
func TestKeysThatDifferInCaseAreTwo(t *testing.T) {
	limiter := newLimiter(t, core.Options{Identify: whoSays})
	for _, by := range []core.KeyFunc{core.ByHeader("X-Api-Key"), core.ByUser, core.ByValue("user")} {
		guard := newGuard(t, limiter, core.Rule{Name: "n", Seconds: 3600, MaxCount: 1, Key: by})
		wantApart(t, guard, newView("GET", "/").with("X-Api-Key", "sEcret").as("Alice"), newView("GET", "/").with("X-Api-Key", "secret").as("alice"))
	}
}

// A limit by a value that the service had set looked the value up in the headers, which callers
// write.
func TestValuesAreNotReadFromHeaders(t *testing.T) {
	guard := newGuard(t, newLimiter(t, core.Options{}), core.Rule{Name: "n", Seconds: 3600, MaxCount: 1, Key: core.ByValue("plan")})
	wantStatus(t, guard, newView("GET", "/").with("Plan", "a").with("plan", "a"), 200)
	wantStatus(t, guard, newView("GET", "/").with("Plan", "b").with("plan", "b"), 429)
}

// A client that used one address after another of its own network was a new client each time.
func TestRotatingThroughA64IsOneClient(t *testing.T) {
	guard := newGuard(t, newLimiter(t, core.Options{}), core.Rule{Name: "n", Seconds: 3600, MaxCount: 2})
	for i, want := range []int{200, 200, 429, 429} {
		wantStatus(t, guard, newView("GET", "/").from(fmt.Sprintf("2001:db8:1:2:%x::%x", 4096*i, i)), want)
	}
	wantStatus(t, guard, newView("GET", "/").from("2001:db8:1:3::1"), 200)
}
