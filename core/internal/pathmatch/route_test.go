package pathmatch_test

import (
	"testing"

	"github.com/accesslimit/accesslimit/core/internal/pathmatch"
)

// A path can match routes of any framework.
func TestCanMatch(t *testing.T) {
	for _, test := range []struct {
		route, path string
		want        bool
	}{
		{"/", "/", true}, {"/", "/a", false}, {"/a", "/", false}, {"/a", "/a/", true}, {"/a/", "/a", true}, {"/a", "/b", false}, {"/a", "/A", false},
		{"/:id", "/7", true}, {"/:id", "/7/8", false}, {"/posts/{id}", "/posts/7", true}, {"/posts/{id}", "/users/7", false}, {"/posts/{id}", "/posts", false},
		{"/:id<int>", "/7", true}, {"/a/:id?", "/a", true}, {"/a/*file", "/a/b/c", true}, {"/a/{file...}", "/a/b/c", true}, {"/a/{$}", "/a/", true}, {"/a/{$}", "/a/b", false}, {"/{$}", "/", true},
		{"/*", "/anything/at/all", true}, {"/a/+", "/a/b/c", true}, {"/a/*file", "/b", false},
		{"/a/", "/a/b/c", true}, {"/a/", "/b/c", false},
	} {
		if got := pathmatch.CanMatch(test.route, test.path, 0); got != test.want {
			t.Errorf("%s for %s: %t, want %t", test.route, test.path, got, test.want)
		}
	}
	if !pathmatch.CanMatch("/Posts/:id", "/posts/7", pathmatch.AnyCase) {
		t.Error("the case of letters is not ignored")
	}
}

// The longest of several subtrees goes first, and any other route before all of them.
func TestPrecision(t *testing.T) {
	ascending := []string{"/a/", "/a/b/", "/a/:id"}
	for i, route := range ascending[1:] {
		if before := ascending[i]; pathmatch.Precision(route) <= pathmatch.Precision(before) {
			t.Errorf("%s is not before %s", route, before)
		}
	}
	if pathmatch.Precision("/") != pathmatch.Precision("/a") {
		t.Error("/ is a subtree")
	}
}
