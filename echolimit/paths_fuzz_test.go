package echolimit_test

import (
	"testing"

	"github.com/accesslimit/accesslimit/core/limittest"
)

// FuzzPaths tries paths on echo's router.
func FuzzPaths(f *testing.F) { limittest.FuzzPaths(f, limittest.Adapter{Serve: serve}) }
