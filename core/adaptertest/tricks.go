package adaptertest

import (
	"slices"
	"sync/atomic"
	"testing"
)

// Tricks counts the tricks that were tried on an adapter.
type Tricks struct {
	Addresses int // calls with a misleading peer or header about the caller's address
	Requests  int // requests with another spelling of the path, method or headers; 0 for an RPC
	Served    int // the Requests that reach a handler if there is no rule
	Names     int // callers whose names are hostile texts
}

// RunTricks runs the scenarios of hostile callers, counting in process, and returns how many tricks
// they tried.
func RunTricks(t *testing.T, adapter Adapter) Tricks {
	adapter.complete(t)
	adapter.run(t, slices.Concat(hopScenarios, pathScenarios, hostileScenarios), inProcess)
	tried := Tricks{Addresses: len(peerTricks) + len(forTricks) + len(forwardedTricks) + len(realTricks), Names: len(hostileTexts)}
	if !adapter.RPC {
		tried.Addresses += len(lineTricks)
		tried.Requests = len(tries())
		tried.Served = servedTries(t, &site{adapter: adapter, network: "tcp"})
	}
	return tried
}

// servedTries returns how many of the tries reach a guarded handler if there is no rule.
func servedTries(t *testing.T, s *site) int {
	var served atomic.Int32
	routes := ruledRoutes()
	for i := range routes {
		if !everybodys(routes[i]) {
			routes[i].Handle = func(h Handling) { served.Add(1); h.Text("ok") }
		}
	}
	s.serve(t, App{Limiter: s.limiter(t), Routes: routes})
	for _, try := range tries() {
		s.doRaw(t, try.method, try.target, try.lines...)
	}
	return int(served.Load())
}
