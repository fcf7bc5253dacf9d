package examples_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/internal/bounded"
	"github.com/accesslimit/accesslimit/internal/logtest"
	"github.com/accesslimit/accesslimit/nethttplimit"
)

// site is a service behind a proxy that asks a limiter before it forwards a call.
type site struct {
	t       *testing.T
	address string       // of the proxy
	auth    *http.Server // answers the proxy
	asked   chan string  // the calls that it decided: method, host and path
	served  chan string  // the calls that the service got: method, target and body
}

// newSite starts the service, the limiter and the proxy, until the test ends.
func newSite(t *testing.T, name, lines string) *site {
	dir, err := os.MkdirTemp("", "proxy") // the path of a socket must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	s := &site{t: t, asked: make(chan string, 10), served: make(chan string, 10)}
	socket := filepath.Join(dir, "auth")
	s.auth = s.serve("unix", socket, nethttplimit.ForwardAuth(s.newCheck()))
	service := s.serve("tcp", "127.0.0.1:0", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		s.served <- r.Method + " " + r.RequestURI + " " + string(body)
		if status, err := strconv.Atoi(r.URL.Query().Get("status")); err == nil {
			w.Header().Set("Retry-After", "7")
			w.WriteHeader(status)
		}
	}))
	s.run(func(address string) *exec.Cmd { return asking[name](t, dir, lines, address, service.Addr, socket) })
	return s
}

// serve serves a handler until the test ends.
func (s *site) serve(network, address string, handler http.Handler) *http.Server {
	s.t.Helper()
	l, err := net.Listen(network, address)
	if err != nil {
		s.t.Fatal(err)
	}
	server := &http.Server{Handler: handler, Addr: l.Addr().String()}
	go func() { _ = server.Serve(l) }()
	bounded.Cleanup(s.t, func() { _ = server.Close() })
	return server
}

// newCheck returns the rules: two calls to /limited/..., and a login for /private/...
func (s *site) newCheck() *core.Check {
	limiter := newLimiter(s.t, core.Options{
		ClientIP: core.ClientIP{TrustedProxies: []string{"unix"}},
		Identify: core.BearerToken(func(_ context.Context, token string) (string, error) {
			if token == "broken" {
				return "", errors.New("no database")
			}
			return "", nil
		}),
	})
	return limiter.MustCheck(
		core.Rule{Name: "limited", Seconds: 600, MaxCount: 2, Methods: []string{"POST"}, Paths: []string{"/limited/**"}},
		core.Rule{Name: "private", Seconds: 600, NeedLogin: true, Paths: []string{"/private/**"}},
		core.Rule{Name: "all", Seconds: 600, MaxCount: 1000, Key: s.note},
	)
}

// note is a KeyFunc that notes what the limiter knows of a call.
func (s *site) note(r core.Request) (string, error) {
	s.asked <- fmt.Sprint(r.Method(), " ", r.Host(), " ", r.Path())
	if from := r.ClientIP().String(); from != "127.0.0.1" {
		s.t.Errorf("a call is counted as from %s", from)
	}
	return "all", nil
}

// run runs the proxy until the test ends. Another process may take its port before it does.
func (s *site) run(command func(address string) *exec.Cmd) {
	s.t.Helper()
	logged := new(logtest.Log)
	for range 5 {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			s.t.Fatal(err)
		}
		s.address = l.Addr().String()
		_ = l.Close()
		c := command(s.address)
		c.Stdout, c.Stderr = logged, logged
		if err := c.Start(); err != nil {
			s.t.Fatal(err)
		}
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			_ = c.Wait()
		}()
		bounded.Cleanup(s.t, func() {
			_ = c.Process.Kill()
			<-ended
		})
		if s.answers(ended) {
			return
		}
	}
	s.t.Fatalf("the proxy does not start: %s", logged)
}

// answers waits until the proxy serves, or has ended.
func (s *site) answers(ended chan struct{}) bool {
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		select {
		case <-ended:
			return false
		default:
		}
		if conn, err := net.Dial("tcp", s.address); err == nil {
			_ = conn.Close()
			return true
		}
	}
	return false
}

// send sends a request, and returns the reply.
func (s *site) send(request string) (status int, header http.Header) {
	s.t.Helper()
	conn, err := net.Dial("tcp", s.address)
	if err != nil {
		s.t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	_, _ = io.WriteString(conn, request)
	reply, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		s.t.Fatalf("%.80q: %v", request, err)
	}
	_, _ = io.Copy(io.Discard, reply.Body)
	return reply.StatusCode, reply.Header
}

// taken returns what is in a channel, or "".
func taken(from chan string) (all string) {
	for len(from) > 0 {
		all += <-from
	}
	return all
}
