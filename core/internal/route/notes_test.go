package route_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/accesslimit/accesslimit/core/internal/route"
)

// noted returns what is noted of GET calls for these routes.
func noted(patterns ...string) route.Noted {
	var n route.Notes
	for _, pattern := range patterns {
		n.Note(route.Of("GET", pattern), false, 0)
	}
	return n.Noted()
}

// The route of a path is the only one that matches it, or the longest subtree.
func TestFind(t *testing.T) {
	calls := []route.Noted{noted("/users/:id", "/files/", "/a/:x"), noted("/files/old/", "/a/:y", "/a/b")}
	for path, want := range map[string]string{
		"/users/7": "/users/:id", "/files/x": "/files/", "/files/old/x": "/files/old/", "/a/b": "/a/b", "/a/c": "", "/": "",
	} {
		if got := route.Find(calls, "HEAD", path); got != want {
			t.Errorf("the route of %s is %q, want %q", path, got, want)
		}
	}
}

// A guard was called for the routes that are noted, and for any if there were more, or one that was
// not known.
func TestIncludes(t *testing.T) {
	var many []string
	for i := range route.MaxNoted + 1 {
		many = append(many, fmt.Sprint("/", i))
	}
	for _, c := range []struct {
		calls   route.Noted
		pattern string
		want    bool
		breadth int
	}{
		{noted(), "/a", false, 0},
		{noted("/a"), "/a", true, 1},
		{noted("/a"), "/b", false, 1},
		{noted("/:x", "/a/b"), "", true, 2}, // for the path /c
		{noted("/a/b"), "", false, 1},
		{noted("/a", ""), "/b", true, route.MaxNoted + 1},
		{noted(strings.Repeat("/a", 1000)), "/b", true, route.MaxNoted + 1},
		{noted(many...), "/b", true, route.MaxNoted + 1},
	} {
		if got := c.calls.Includes("GET", c.pattern, "/c"); got != c.want || c.calls.Breadth() != c.breadth {
			t.Errorf("%+v includes %q: %t, want %t; breadth %d", c.calls, c.pattern, got, c.want, c.calls.Breadth())
		}
	}
	if got := noted("/a"); got.Includes("POST", "/a", "/a") {
		t.Error("a GET includes a POST")
	}
}

// The notes that a reader has got stay as they are while further calls are noted.
func TestNotesAreSnapshots(t *testing.T) {
	var n route.Notes
	var all sync.WaitGroup
	for worker := range 4 {
		all.Go(func() {
			for i := range 400 {
				n.Note(route.Of("GET", fmt.Sprint("/", worker, i%5)), i%3 == 0, 0)
				for _, key := range n.Noted().Routes {
					if !strings.HasPrefix(key.Name(), "GET /") {
						t.Errorf("noted %q", key.Name())
					}
				}
			}
		})
	}
	all.Wait()
	if got := n.Noted(); len(got.Routes) != route.MaxNoted || !got.Subjects || n.AreNew() {
		t.Errorf("noted %+v", got)
	}
}
