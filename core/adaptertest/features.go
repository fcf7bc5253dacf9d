package adaptertest

import (
	"slices"
	"testing"
)

// Feature is something that some frameworks cannot do. See [Adapter].Cannot.
type Feature string

const (
	// RouteInUse means that a middleware of the whole router knows the route. Otherwise the View
	// must be an adapter.RoutedView, so that the limiter can log that a rule needs the route.
	RouteInUse Feature = "the route in Use"
	// LeavingCallers means that a handler's context ends when its caller leaves.
	LeavingCallers Feature = "leaving callers"
	// FoldedHeaders means that a header may continue on the next line if that begins with white
	// space. Otherwise such a request may get 400.
	FoldedHeaders Feature = "folded headers"
	// UnixSockets means that the framework can serve on the listener of a unix socket.
	UnixSockets Feature = "unix sockets"
)

var features = []Feature{RouteInUse, LeavingCallers, FoldedHeaders, UnixSockets}

// can reports whether the framework has the feature.
func (a Adapter) can(f Feature) bool {
	_, missing := a.Cannot[f]
	return !missing
}

// checkCannot fails the test if Cannot names an unknown Feature, or gives no reason.
func (a Adapter) checkCannot(t testing.TB) {
	t.Helper()
	for feature, reason := range a.Cannot {
		if !slices.Contains(features, feature) {
			t.Fatalf("adaptertest: Adapter.Cannot: there is no feature %q; there are %q", feature, features)
		}
		if reason == "" {
			t.Fatalf("adaptertest: Adapter.Cannot: %q needs a reason", feature)
		}
	}
}
