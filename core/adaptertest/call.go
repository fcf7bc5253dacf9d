package adaptertest

import (
	"context"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// Dial opens a connection to the server under test.
type Dial func(ctx context.Context) (net.Conn, error)

// Client makes calls one after the other, over one connection as long as the server keeps it.
type Client interface {
	Do(t testing.TB, call Call) Reply
	Close()
}

// Call is one call of a client.
type Call struct {
	Method, Path string
	// Host is the header Host, or the pseudo-header :authority; service.test unless set.
	Host   string
	Header http.Header
	// Context, if set, makes the client leave without waiting for the reply when it ends.
	Context context.Context
}

// Until returns Context, or a context that never ends.
func (c Call) Until() context.Context {
	if c.Context == nil {
		return context.Background()
	}
	return c.Context
}

// Reply is the reply to a call. An RPC adapter translates its reply to HTTP: Status is the status
// that corresponds to the code, and Header holds the trailers; Retry-After comes from RetryInfo, and
// Refusal-Reference from RequestInfo. A client that left returns the zero Reply.
type Reply struct {
	Status int
	Header http.Header
	Body   string
	// Outcome is the HTTP status, or the code of an RPC.
	Outcome int
	// Violated are the limits that a refusal names.
	Violated []string
}

// get calls a path. Each header is "Name: value".
func (s *site) get(t testing.TB, path string, headers ...string) Reply {
	t.Helper()
	return s.do(t, http.MethodGet, path, headers...)
}

func (s *site) do(t testing.TB, method, path string, headers ...string) Reply {
	t.Helper()
	client := s.adapter.Connect(t, s.dial)
	defer client.Close()
	return s.doWith(t, client, newCall(method, path, headers...))
}

// doWith makes a call with a client. A call that takes longer than patience fails the test.
func (s *site) doWith(t testing.TB, client Client, call Call) Reply {
	t.Helper()
	s.trace.request(call)
	ctx, leave := context.WithCancel(context.Background())
	defer leave()
	defer time.AfterFunc(patience, leave).Stop() // not a deadline: an RPC would send it
	call.Context = ctx
	reply := client.Do(t, call)
	if ctx.Err() != nil {
		t.Fatalf("%s %s: no reply within %v", call.Method, call.Path, patience)
	}
	s.trace.note("  status %d", reply.Status)
	return reply
}

func newCall(method, path string, headers ...string) Call {
	call := Call{Method: method, Path: path, Header: make(http.Header)}
	for _, header := range headers {
		name, value, _ := strings.Cut(header, ": ")
		if name == "Host" {
			call.Host = value
			continue
		}
		call.Header.Add(name, value)
	}
	return call
}

// want calls a path and compares the status.
func (s *site) want(t testing.TB, status int, path string, headers ...string) Reply {
	t.Helper()
	reply := s.get(t, path, headers...)
	if reply.Status != status {
		t.Fatalf("GET %s %v: status %d, want %d; body %q", path, headers, reply.Status, status, reply.Body)
	}
	return reply
}
