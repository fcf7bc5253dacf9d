package examples_test

import (
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Callers of every protocol share a counter, and each is refused in its own way.
func TestConnect(t *testing.T) {
	wantCurl(t)
	s := start(t, "connect")
	shows := s.runPrinted("curl ")
	wantIn(t, shows[0], "200 OK", `Ratelimit: "/grpc.health.v1.Health/Check";r=4;t=`, "SERVING")
	wantIn(t, shows[1], "200\n200\n200\n200\n429\n")
	wantIn(t, shows[2], "429 Too Many Requests", "Retry-After: ", "resource_exhausted")
	if _, err := check(t, s.connect()); status.Code(err) != codes.ResourceExhausted || retryDelay(err) <= 0 {
		t.Errorf("a client of gRPC got %v, to retry after %v", err, retryDelay(err))
	}
}
