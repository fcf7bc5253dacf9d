package redistest

import "testing"

func TestPortThatSomebodyTakesIsLeftToThem(t *testing.T) {
	earlier := Start(t)
	ports := []int{earlier.port, earlier.port, freePort(t)}
	later := newServer(t, nil)
	later.start(func() int {
		port := ports[0]
		ports = ports[1:]
		return port
	})
	if later.port == earlier.port || len(ports) != 0 {
		t.Fatalf("two servers believe that they listen on port %d", later.port)
	}
}

func TestFreePortAvoidsTakenOnes(t *testing.T) {
	taken := Start(t)
	if isFree(taken.port) || !isFree(freePort(t)) {
		t.Fatal("isFree does not tell a taken port from a free one")
	}
}
