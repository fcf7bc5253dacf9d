package adaptertest

import (
	"slices"
	"testing"
)

// RunTricks runs only the scenarios of hostile callers, counting in process, for another configuration of
// a framework.
func RunTricks(t *testing.T, adapter Adapter) {
	adapter.complete(t)
	adapter.run(t, slices.Concat(hopScenarios, pathScenarios, hostileScenarios), inProcess)
}
