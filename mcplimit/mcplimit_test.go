package mcplimit_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/internal/bounded"
	"github.com/accesslimit/accesslimit/internal/extensiontest"
	"github.com/accesslimit/accesslimit/mcplimit"
)

// overStdio makes the test binary a server of one client.
const overStdio = "MCPLIMIT_TEST_STDIO"

func TestMain(m *testing.M) {
	if os.Getenv(overStdio) == "" {
		os.Exit(m.Run())
	}
	limiter, err := core.New(core.Options{Identify: mcplimit.User, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		panic(err)
	}
	rule := perTool(1)
	rule.NeedLogin = true
	_ = tools(mcplimit.New(limiter, rule)).Run(mcplimit.Local(context.Background()), new(mcp.StdioTransport)) // until the client leaves
}

// perTool lets each caller call each tool so often.
func perTool(most int) core.Rule { return core.Rule{Seconds: 600, MaxCount: most} }

// tools returns a server of three tools. The third fails.
func tools(middleware ...mcp.Middleware) *mcp.Server {
	server := mcp.NewServer(&mcp.Implementation{Name: "test", Version: "1"}, &mcp.ServerOptions{Logger: slog.New(slog.DiscardHandler)})
	for _, name := range []string{"search", "write", "fail"} {
		mcp.AddTool(server, &mcp.Tool{Name: name}, func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
			if name == "fail" {
				return nil, nil, io.ErrUnexpectedEOF
			}
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: name}}}, nil, nil
		})
	}
	server.AddReceivingMiddleware(middleware...)
	return server
}

// verify takes each token for its user.
func verify(_ context.Context, token string, _ *http.Request) (*auth.TokenInfo, error) {
	return &auth.TokenInfo{UserID: token, Expiration: time.Now().Add(time.Hour)}, nil
}

// serving serves over HTTP, to callers with a token if there must be one.
func serving(t *testing.T, server *mcp.Server, options mcp.StreamableHTTPOptions, token bool) (url string) {
	t.Helper()
	h := mcplimit.HTTP(streamable(server, options))
	if token {
		h = auth.RequireBearerToken(verify, nil)(h)
	}
	s := httptest.NewServer(h)
	bounded.Cleanup(t, s.Close)
	return s.URL
}

// sent notes the last refusal on the wire, and sends a token.
type sent struct {
	token         string
	status, after atomic.Value
}

func (s *sent) RoundTrip(r *http.Request) (*http.Response, error) {
	if s.token != "" {
		r.Header.Set("Authorization", "Bearer "+s.token)
	}
	response, err := http.DefaultTransport.RoundTrip(r)
	if err == nil && response.StatusCode >= 400 {
		s.status.Store(response.StatusCode)
		s.after.Store(response.Header.Get("Retry-After"))
	}
	return response, err
}

// session connects the SDK's own client.
func session(t *testing.T, transport mcp.Transport) *mcp.ClientSession {
	t.Helper()
	s, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil).Connect(t.Context(), transport, nil)
	if err != nil {
		t.Fatal(err)
	}
	bounded.Cleanup(t, func() { _ = s.Close() })
	return s
}

func overHTTP(url string, s *sent) mcp.Transport {
	return &mcp.StreamableClientTransport{Endpoint: url, HTTPClient: &http.Client{Transport: s}, DisableStandaloneSSE: true}
}

func call(t *testing.T, s *mcp.ClientSession, tool string) error {
	t.Helper()
	_, err := s.CallTool(t.Context(), &mcp.CallToolParams{Name: tool})
	return err
}

func wantAllowed(t *testing.T, s *mcp.ClientSession, tool string) {
	t.Helper()
	if err := call(t, s, tool); err != nil {
		t.Fatalf("%s: %v", tool, err)
	}
}

func wantRefused(t *testing.T, s *mcp.ClientSession, tool string) error {
	t.Helper()
	err := call(t, s, tool)
	if err == nil {
		t.Fatalf("%s was allowed", tool)
	}
	return err
}

// kinds are the servers that the SDK has over HTTP.
var kinds = map[string]mcp.StreamableHTTPOptions{
	"stateful":            {},
	"stateful, JSON":      {JSONResponse: true},
	"stateless":           {Stateless: true},
	"stateless, JSON":     {Stateless: true, JSONResponse: true},
	"with an event store": {EventStore: mcp.NewMemoryEventStore(nil)},
}

// A new session, over HTTP, has the same counters: they are the principal's, for each tool.
func TestPrincipalAndTool(t *testing.T) {
	for name, options := range kinds {
		t.Run(name, func(t *testing.T) {
			url := serving(t, tools(mcplimit.New(extensiontest.NewLimiter(t, core.Options{}), perTool(1))), options, true)
			alice, again, bob := &sent{token: "alice"}, &sent{token: "alice"}, &sent{token: "bob"}
			first := session(t, overHTTP(url, alice))
			wantAllowed(t, first, "search")
			wantAllowed(t, first, "write")
			wantRefused(t, first, "search")
			wantRefused(t, session(t, overHTTP(url, again)), "search")
			wantAllowed(t, session(t, overHTTP(url, bob)), "search")
			for range 3 { // free
				if _, err := first.ListTools(t.Context(), nil); err != nil {
					t.Fatal(err)
				}
			}
			if options.EventStore != nil && again.status.Load() == nil {
				return // the stream had begun
			}
			if again.status.Load() != 429 || again.after.Load() == "" {
				t.Errorf("the refusal had status %v and Retry-After %v, want 429 and seconds", again.status.Load(), again.after.Load())
			}
		})
	}
}

// Over stdio the process is the principal, who needs no login.
func TestStdio(t *testing.T) {
	for range 2 {
		command := exec.Command(os.Args[0])
		command.Env = append(os.Environ(), overStdio+"=1")
		s := session(t, &mcp.CommandTransport{Command: command})
		wantAllowed(t, s, "search")
		wantAllowed(t, s, "write")
		var refusal *jsonrpc.Error
		if err := wantRefused(t, s, "search"); !errors.As(err, &refusal) {
			t.Fatalf("%v is no JSON-RPC error", err)
		}
		if refusal.Code != 429 || !strings.Contains(string(refusal.Data), `"retryAfter":6`) || !strings.Contains(refusal.Message, "Try again in 10 min") {
			t.Errorf("the refusal is %d %q with %s", refusal.Code, refusal.Message, refusal.Data)
		}
		if _, err := s.ListTools(t.Context(), nil); err != nil {
			t.Error(err)
		}
	}
}

// A tool's own error is not a success, though the JSON-RPC response is a result.
func TestFailedToolIsNotCounted(t *testing.T) {
	rule := perTool(1)
	rule.Count = func(code int) bool { return code == 0 }
	url := serving(t, tools(mcplimit.New(extensiontest.NewLimiter(t, core.Options{}), rule)), mcp.StreamableHTTPOptions{}, false)
	s := session(t, overHTTP(url, new(sent)))
	for range 3 {
		wantAllowed(t, s, "fail")
	}
	wantAllowed(t, s, "search")
	wantRefused(t, s, "search")
}
