package examples_test

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	reflectionpb "google.golang.org/grpc/reflection/grpc_reflection_v1"
	"google.golang.org/grpc/status"

	"github.com/accesslimit/accesslimit/internal/bounded"
	"github.com/accesslimit/accesslimit/internal/redistest"
)

func TestGRPC(t *testing.T) {
	t.Run("in process", func(t *testing.T) { testGRPC(t) })
	t.Run("on Redis", func(t *testing.T) { testGRPC(t, "REDIS_URL=redis://"+redistest.Start(t).Addr()) })
}

func testGRPC(t *testing.T, env ...string) {
	connection := start(t, "grpc", env...).connect()
	for i := range 5 {
		trailer, err := check(t, connection)
		if err != nil {
			t.Fatalf("Check %d: %v", i+1, err)
		}
		if got := trailer.Get("ratelimit-policy"); len(got) != 1 || got[0] != `"/grpc.health.v1.Health/Check";q=5;w=10` {
			t.Errorf("Check %d: trailer ratelimit-policy is %q", i+1, got)
		}
	}
	_, err := check(t, connection)
	if status.Code(err) != codes.ResourceExhausted {
		t.Fatalf("Check 6: %v", err)
	}
	if delay := retryDelay(err); delay <= 0 || delay > 11*time.Second {
		t.Errorf("Check 6: RetryInfo says %v", delay)
	}
	for i := range 7 { // the rule excepts reflection
		if services := reflect(t, connection); !strings.Contains(services, "grpc.health.v1.Health") {
			t.Errorf("reflection %d: services are %q", i+1, services)
		}
	}
}

func TestGRPCInstancesShareTheirCounts(t *testing.T) {
	url := "REDIS_URL=redis://" + redistest.Start(t).Addr()
	one, other := start(t, "grpc", url).connect(), start(t, "grpc", url).connect()
	for i, connection := range []*grpc.ClientConn{one, other, one, other, one} {
		if _, err := check(t, connection); err != nil {
			t.Fatalf("Check %d: %v", i+1, err)
		}
	}
	if _, err := check(t, other); status.Code(err) != codes.ResourceExhausted {
		t.Errorf("Check 6: %v", err)
	}
}

// The example is its own client.
func TestGRPCCheck(t *testing.T) {
	s := start(t, "grpc")
	for line := range strings.Lines(s.about) {
		if strings.Contains(line, "go run") && !strings.Contains(line, "-check "+s.address) {
			t.Errorf("prints a command without the real address: %s", line)
		}
	}
	for range 5 {
		wantIn(t, s.runCheck(true), "status: OK", `trailer: ratelimit ["/grpc.health.v1.Health/Check";r=`)
	}
	wantIn(t, s.runCheck(false), "status: ResourceExhausted", "retry after: ")
}

// runCheck runs the client, which exits with 0 only if its call was let in.
func (s *service) runCheck(letIn bool) string {
	s.t.Helper()
	output, err := exec.Command(filepath.Join(programs, "grpc"), "-check", s.address).CombinedOutput()
	if letIn != (err == nil) {
		s.t.Fatalf("%v: %s", err, output)
	}
	return string(output)
}

func (s *service) connect() *grpc.ClientConn {
	s.t.Helper()
	connection, err := grpc.NewClient(s.address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		s.t.Fatal(err)
	}
	bounded.Cleanup(s.t, func() { _ = connection.Close() })
	return connection
}

func check(t *testing.T, connection *grpc.ClientConn) (trailer metadata.MD, err error) {
	_, err = healthpb.NewHealthClient(connection).Check(t.Context(), &healthpb.HealthCheckRequest{}, grpc.Trailer(&trailer))
	return trailer, err
}

// retryDelay returns the time that a status tells its client to wait.
func retryDelay(err error) time.Duration {
	for _, detail := range status.Convert(err).Details() {
		if retry, ok := detail.(*errdetails.RetryInfo); ok {
			return retry.RetryDelay.AsDuration()
		}
	}
	return 0
}

// reflect asks the server which services it has.
func reflect(t *testing.T, connection *grpc.ClientConn) string {
	t.Helper()
	stream, err := reflectionpb.NewServerReflectionClient(connection).ServerReflectionInfo(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	list := &reflectionpb.ServerReflectionRequest{MessageRequest: &reflectionpb.ServerReflectionRequest_ListServices{}}
	if err := stream.Send(list); err != nil {
		t.Fatal(err)
	}
	response, err := stream.Recv()
	if err != nil {
		t.Fatal(err)
	}
	_ = stream.CloseSend()
	return response.String()
}

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
