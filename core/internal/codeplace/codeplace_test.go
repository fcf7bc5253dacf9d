package codeplace_test

import (
	"runtime"
	"testing"

	"github.com/accesslimit/accesslimit/core/internal/codeplace"
)

// A place begins at the root of this module, which is the main module of this test, or with the
// name of another module.
func TestOf(t *testing.T) {
	for function, want := range map[string]string{
		"github.com/accesslimit/accesslimit/examples/gin.routes.func1":   "examples/gin/routes.go:12",
		"github.com/accesslimit/accesslimit/core_test.(*service).attach": "core/routes.go:12",
		"github.com/accesslimit/accesslimit.init":                        "routes.go:12",
		"github.com/acme/shop/api.(*Service).routes":                     "github.com/acme/shop/api/routes.go:12",
		"example.test/shop%2ev2.attach[...]":                             "example.test/shop.v2/routes.go:12",
		"command-line-arguments.main":                                    "routes.go:12",
	} {
		if got := codeplace.Of(function, "/home/alice/shop/routes.go", 12); got != want {
			t.Errorf("%s: %s, want %s", function, got, want)
		}
	}
}

func TestOfFrame(t *testing.T) {
	var callers [1]uintptr
	frame, _ := runtime.CallersFrames(callers[:runtime.Callers(1, callers[:])]).Next()
	if got := codeplace.OfFrame(&frame); got != "core/internal/codeplace/codeplace_test.go:29" {
		t.Error(got)
	}
}
