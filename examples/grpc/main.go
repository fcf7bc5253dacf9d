// Command grpc is a gRPC service with a limited method, the standard health check. Package example
// lists the environment variables that it reads. With -check the command is a client of itself.
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/reflection"
	"google.golang.org/grpc/status"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/examples/internal/example"
	"github.com/accesslimit/accesslimit/grpclimit"
)

const about = `
  Check, as every method of the health service   5 calls in 10 s per peer
  server reflection                              excepted

Try, in the repository:

  go run ./examples/grpc -check TARGET
  for i in 1 2 3 4 5 6; do go run ./examples/grpc -check TARGET; done   # the sixth in 10 s: ResourceExhausted
  sleep 11; go run ./examples/grpc -check TARGET                        # passes again

`

func main() {
	target := flag.String("check", "", "call the example at this `address`, and print its answer")
	flag.Parse()
	var err error
	if *target != "" {
		err = check(*target)
	} else {
		err = serve()
	}
	if err != nil {
		log.Fatal(err)
	}
}

func serve() error {
	limiter, err := example.Limiter()
	if err != nil {
		return err
	}
	defer limiter.Close()

	// A rule without a name counts each method by itself. A stream is charged when it opens.
	rule := core.Rule{Seconds: 10, MaxCount: 5, Except: []string{"/grpc.reflection.*/*"}}
	unary, stream := grpclimit.With(limiter.MustGuard(rule))
	server := grpc.NewServer(grpc.ChainUnaryInterceptor(unary), grpc.ChainStreamInterceptor(stream))
	healthpb.RegisterHealthServer(server, health.NewServer())
	reflection.Register(server)
	return example.Serve(about, server.Serve, func(ctx context.Context) error {
		// Clients may keep their streams open for as long as they like.
		defer context.AfterFunc(ctx, server.Stop)()
		server.GracefulStop()
		return nil
	})
}

// check prints what a client sees of a limit: a status and, if it is refused, how long to wait.
func check(target string) error {
	connection, err := grpc.NewClient(target, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	defer func() { _ = connection.Close() }()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()

	var trailer metadata.MD
	client := healthpb.NewHealthClient(connection)
	_, err = client.Check(ctx, &healthpb.HealthCheckRequest{}, grpc.Trailer(&trailer))
	answer := status.Convert(err)
	fmt.Printf("status: %v\nmessage: %s\n", answer.Code(), answer.Message())
	for _, detail := range answer.Details() {
		if retry, ok := detail.(*errdetails.RetryInfo); ok {
			fmt.Println("retry after:", retry.RetryDelay.AsDuration())
		}
	}
	for _, name := range []string{"ratelimit", "ratelimit-policy"} {
		fmt.Println("trailer:", name, trailer[name])
	}
	return err
}
