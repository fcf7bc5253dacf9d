// Command connect is a service on connectrpc.com/connect with a limited procedure, the standard health
// check. Package example lists the environment variables that it reads.
package main

import (
	"context"
	"log"
	"net/http"
	"time"

	"connectrpc.com/connect"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/accesslimit/accesslimit/connectlimit"
	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/examples/internal/example"
)

const about = `
  Check of the health service   5 calls in 10 s per peer

Try, in the repository:

  curl -i --json '{}' URL/grpc.health.v1.Health/Check
  for i in 1 2 3 4 5; do curl -s -o /dev/null -w '%{http_code}\n' --json '{}' URL/grpc.health.v1.Health/Check; done   # the fifth: 429
  curl -i -G -d connect=v1 -d encoding=json --data-urlencode 'message={}' URL/grpc.health.v1.Health/Check
  go run ./examples/grpc -check TARGET   # a client of gRPC: ResourceExhausted

`

func main() {
	if err := serve(); err != nil {
		log.Fatal(err)
	}
}

func serve() error {
	limiter, err := example.Limiter()
	if err != nil {
		return err
	}
	defer limiter.Close()

	// A rule without a name counts each procedure by itself.
	limits := connect.WithInterceptors(connectlimit.New(limiter, core.Rule{Seconds: 10, MaxCount: 5}))
	mux := http.NewServeMux()
	mux.Handle(healthpb.Health_Check_FullMethodName, connect.NewUnaryHandlerSimple(healthpb.Health_Check_FullMethodName, check,
		limits, connect.WithIdempotency(connect.IdempotencyNoSideEffects))) // so that GET works, too

	// Clients of gRPC speak HTTP/2, also without TLS.
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second, IdleTimeout: time.Minute, Protocols: new(http.Protocols)}
	server.Protocols.SetHTTP1(true)
	server.Protocols.SetUnencryptedHTTP2(true)
	return example.Serve(about, server.Serve, server.Shutdown)
}

func check(context.Context, *healthpb.HealthCheckRequest) (*healthpb.HealthCheckResponse, error) {
	return &healthpb.HealthCheckResponse{Status: healthpb.HealthCheckResponse_SERVING}, nil
}
