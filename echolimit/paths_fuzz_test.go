package echolimit_test

import (
	"testing"

	"github.com/accesslimit/accesslimit/core/adaptertest"
)

// FuzzPaths tries paths on echo's router.
func FuzzPaths(f *testing.F) { adaptertest.FuzzPaths(f, adaptertest.Adapter{Serve: serve}) }
