package example

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
)

// Routes describes the limits of the HTTP examples, with commands to try them.
const Routes = `
  all routes but GET /healthz   100 calls in 1 s per client
  POST /reply                   5 in 60 s per user: alice-token, bob-token, or cookie session=alice-session
  GET /limit/anything           10 in 10 s per client, GET /limit/free/anything excepted
  GET /users/1                  3 in 10 s per client, whatever the id
  GET /burst                    10 at once per client, and 5 more in each second
  GET /fixed                    4 in 5 s per client

Try:

  curl -i URL/
  for i in 1 2 3 4; do curl -s -o /dev/null -w '%{http_code}\n' URL/users/$i; done   # the fourth: 429
  for i in 1 2 3 4 5 6; do curl -si -X POST -H 'Authorization: Bearer alice-token' URL/reply; echo; done   # the sixth: 429

With OPERATOR_TOKEN=secret in the environment, an operator opens URL/console/ (any name, and the password secret), or asks:

  ask() { curl -s -H 'Authorization: Bearer secret' "$@"; }
  ask URL/operator/top                                                   # who is refused most?
  ask 'URL/operator/subject?subject=user:alice'                          # what has alice used?
  ask 'URL/operator/explain?method=POST&path=/reply&user=alice'          # which limits are in force here?
  ask -G URL/operator/why --data-urlencode reference=...                 # why was this call refused?
  ask URL/operator/refused                                               # how much is refused, per rule?
  ask URL/operator/ban -d 'rule=api&subject=203.0.113.7&span=1h&note=scraper'
  ask 'URL/operator/bans?rule=api'
  ask URL/operator/unban -d 'rule=api&subject=203.0.113.7&note=mistake'
  ask URL/operator/audit                                                 # who did that?

`

// ServeHTTP serves the handler at ADDR until the process is told to end.
func ServeHTTP(handler http.Handler) error {
	server := &http.Server{ReadHeaderTimeout: 5 * time.Second, IdleTimeout: time.Minute}
	server.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if Draining() {
			w.Header().Set("Connection", "close")
			if r.URL.Path == "/healthz" {
				http.Error(w, "draining", http.StatusServiceUnavailable)
				return
			}
		}
		handler.ServeHTTP(w, r)
	})
	return Serve(Routes, server.Serve, server.Shutdown)
}

var draining atomic.Bool

// Draining reports whether the process is about to end. Then each reply should be the last of its
// connection, so that a proxy makes its next call elsewhere, and health checks should fail.
func Draining() bool { return draining.Load() }

// Serve listens at ADDR, prints the commands to try, and serves until SIGINT or SIGTERM. Then it
// drains the connections for DRAIN, and stop has five seconds to finish the calls under way.
func Serve(about string, serve func(net.Listener) error, stop func(context.Context) error) error {
	drain, err := time.ParseDuration(cmp.Or(os.Getenv("DRAIN"), "1s"))
	if err != nil {
		return fmt.Errorf("DRAIN: %w", err)
	}
	listener, err := listen(cmp.Or(os.Getenv("ADDR"), ":8080"))
	if err != nil {
		return err
	}
	signalled, restore := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer restore()
	explain(about, listener.Addr())
	failed := make(chan error, 1)
	go func() { failed <- serve(listener) }()
	select {
	case err := <-failed:
		return err
	case <-signalled.Done():
	}
	restore() // a second signal ends the process at once
	draining.Store(true)
	time.Sleep(drain)
	patience, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	closePages()
	return stop(patience)
}

func listen(addr string) (net.Listener, error) {
	path, ok := strings.CutPrefix(addr, "unix:")
	if !ok {
		return net.Listen("tcp", addr)
	}
	if conn, err := net.Dial("unix", path); err == nil {
		_ = conn.Close() // another process listens there
	} else if errors.Is(err, syscall.ECONNREFUSED) {
		_ = os.Remove(path) // a killed process left it behind
	}
	return net.Listen("unix", path)
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
