package example

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"
)

// Routes says what the HTTP examples limit, and how to see it.
const Routes = `
  all routes but GET /healthz   100 calls in 1 s per client
  POST /reply                   5 in 60 s per user: alice-token, bob-token, or cookie session=alice-session
  GET /limit/...                10 in 10 s per client, /limit/free/... excepted
  GET /users/:id                3 in 10 s per client, whatever the id
  GET /burst                    10 at once per client, and 5 more in each second
  GET /fixed                    4 in 5 s per client

Try:

  curl -i URL/
  for i in 1 2 3 4; do curl -s -o /dev/null -w '%{http_code}\n' URL/users/$i; done   # the fourth: 429
  for i in 1 2 3 4 5 6; do curl -si -X POST -H 'Authorization: Bearer alice-token' URL/reply; echo; done   # the sixth: 429

`

// ServeHTTP serves the handler at ADDR until the process is told to end.
func ServeHTTP(handler http.Handler) error {
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 5 * time.Second, IdleTimeout: time.Minute}
	return Serve(Routes, server.Serve, server.Shutdown)
}

// Serve listens at ADDR, prints what there is to see, and serves until SIGINT or SIGTERM. Then stop has five seconds to let
// the calls finish that are under way.
func Serve(about string, serve func(net.Listener) error, stop func(context.Context) error) error {
	listener, err := listen(cmp.Or(os.Getenv("ADDR"), ":8080"))
	if err != nil {
		return err
	}
	explain(about, listener.Addr())

	signalled, restore := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer restore()
	failed := make(chan error, 1)
	go func() { failed <- serve(listener) }()
	select {
	case err := <-failed:
		return err
	case <-signalled.Done():
	}
	restore() // a second signal ends the process at once
	patience, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	return stop(patience)
}

func listen(addr string) (net.Listener, error) {
	if path, ok := strings.CutPrefix(addr, "unix:"); ok {
		return net.Listen("unix", path)
	}
	return net.Listen("tcp", addr)
}

// explain fills in the real address: URL as curl takes it, TARGET as a gRPC client does.
func explain(about string, addr net.Addr) {
	target := strings.Replace(addr.String(), "[::]", "localhost", 1) // [::] is all of this machine's addresses
	url := "http://" + target
	if addr.Network() == "unix" {
		target = "unix:" + addr.String()
		url = "--unix-socket " + addr.String() + " http://localhost"
	}
	fmt.Printf("listening on %v\n%s", addr, strings.NewReplacer("URL", url, "TARGET", target).Replace(about))
}
