package limittest

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"testing"
	"time"
)

// silent is a logger for tests that do not look at the log.
var silent = slog.New(slog.DiscardHandler)

// patient is how long a call of a test may take before the test is stuck.
const patient = 30 * time.Second

// doHTTP makes an HTTP/1.1 request, following no redirect, on a connection of its own.
func doHTTP(t testing.TB, dial Dial, call Call) Reply {
	t.Helper()
	transport := &http.Transport{
		DisableKeepAlives: true,
		DialContext:       func(ctx context.Context, _, _ string) (net.Conn, error) { return dial(ctx) },
	}
	client := &http.Client{
		Transport: transport, Timeout: patient,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	request, err := http.NewRequest(call.Method, "http://service.test"+call.Path, nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header = call.Header
	response, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	return readReply(t, response)
}

// doRaw sends a request line that no client library would send as it is.
func (s *site) doRaw(t *testing.T, method, target string) Reply {
	t.Helper()
	conn, err := s.dial(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(patient))
	fmt.Fprintf(conn, "%s %s HTTP/1.1\r\nHost: service.test\r\nConnection: close\r\n\r\n", method, target)
	response, err := http.ReadResponse(bufio.NewReader(conn), &http.Request{Method: method})
	if err != nil {
		t.Fatalf("%s %s: %v", method, target, err)
	}
	return readReply(t, response)
}

func readReply(t testing.TB, response *http.Response) Reply {
	t.Helper()
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return Reply{Status: response.StatusCode, Header: response.Header, Body: string(body)}
}
