package adaptertest

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// silent is a logger for tests that do not look at the log.
var silent = slog.New(slog.DiscardHandler)

// patience bounds every wait. A correct adapter never waits that long.
var patience = time.Minute

// httpClient speaks HTTP/1.1 and follows no redirect.
type httpClient struct {
	http.Client
	transport *http.Transport
}

func connectHTTP(_ testing.TB, dial Dial) Client {
	transport := &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return dial(ctx) },
	}
	return &httpClient{transport: transport, Client: http.Client{
		Transport:     transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// Close closes the connection.
func (c *httpClient) Close() { c.transport.CloseIdleConnections() }

// Do makes a request.
func (c *httpClient) Do(t testing.TB, call Call) Reply {
	t.Helper()
	request, err := http.NewRequestWithContext(call.Until(), call.Method, "http://service.test"+call.Path, nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header, request.Host = call.Header, call.Host
	response, err := c.Client.Do(request)
	switch {
	case call.Until().Err() != nil:
		return Reply{}
	case err != nil:
		t.Fatalf("%s %s: no reply: %v", call.Method, call.Path, err)
	}
	return readReply(t, response)
}

// raw makes a call with these header lines. HTTP gets them unchanged; an RPC gets them as its
// client sends them.
func (s *site) raw(t testing.TB, method, path string, lines ...string) Reply {
	t.Helper()
	if s.adapter.RPC {
		return s.do(t, method, path, lines...)
	}
	return s.doRaw(t, method, path, lines...)
}

// doRaw sends a request line and header lines unchanged, even if no client library would send them.
func (s *site) doRaw(t testing.TB, method, target string, lines ...string) Reply {
	t.Helper()
	conn, err := s.dial(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(patience))
	s.trace.note("%s %.200q with %.200q", method, target, lines)
	fmt.Fprintf(conn, "%s %s HTTP/1.1\r\nHost: service.test\r\nConnection: close\r\nX-Before: a\r\n%s\r\n", method, target, crlf(lines))
	from := bufio.NewReader(conn)
	response, err := http.ReadResponse(from, &http.Request{Method: method})
	if err != nil {
		t.Fatalf("%s %.200q: no reply within %v: %v", method, target, patience, err)
	}
	reply := readReply(t, response)
	s.trace.note("  status %d", reply.Status)
	if rest, _ := io.ReadAll(from); bytes.HasPrefix(rest, []byte("HTTP/")) {
		t.Errorf("%s %.200q: another reply followed the first one: %q", method, target, rest)
	}
	return reply
}

// crlf joins lines as HTTP does.
func crlf(lines []string) string {
	var all strings.Builder
	for _, line := range lines {
		all.WriteString(line)
		all.WriteString("\r\n")
	}
	return all.String()
}

func readReply(t testing.TB, response *http.Response) Reply {
	t.Helper()
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatalf("a reply broke off, as if Response.Finish was not called after Answer.Run: %v", err)
	}
	reply := Reply{Status: response.StatusCode, Header: response.Header, Body: string(body), Outcome: response.StatusCode}
	if len(body) > 0 && response.Header.Get("Content-Type") == "application/problem+json" {
		var problem struct {
			Violated []string `json:"violated-policies"`
		}
		if err := json.Unmarshal(body, &problem); err != nil {
			reply.Body += "\n(" + err.Error() + ")" // shown when a test fails
		}
		reply.Violated = problem.Violated
	}
	return reply
}
