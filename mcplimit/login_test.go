package mcplimit_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/internal/bounded"
	"github.com/accesslimit/accesslimit/internal/extensiontest"
	"github.com/accesslimit/accesslimit/mcplimit"
)

// loginServer returns a server whose tools need a login.
func loginServer(t *testing.T) *mcp.Server {
	t.Helper()
	rule := perTool(1)
	rule.NeedLogin = true
	return tools(mcplimit.New(extensiontest.NewLimiter(t, core.Options{Identify: mcplimit.User}), rule))
}

func wantCode(t *testing.T, s *mcp.ClientSession, tool string, code int64) {
	t.Helper()
	var refusal *jsonrpc.Error
	if err := wantRefused(t, s, tool); !errors.As(err, &refusal) || refusal.Code != code {
		t.Errorf("the refusal is %v, want the code %d", err, code)
	}
}

// overSSE serves over the SDK's older transport over HTTP.
func overSSE(t *testing.T, around func(http.Handler) http.Handler) (url string) {
	t.Helper()
	server := loginServer(t)
	handler := around(mcp.NewSSEHandler(func(*http.Request) *mcp.Server { return server }, nil))
	s := httptest.NewServer(handler)
	bounded.Cleanup(t, s.Close)
	return s.URL
}

// Nobody is logged in over SSE, behind net/http and behind other servers.
func TestNobodyIsLoggedInOverSSE(t *testing.T) {
	for name, around := range map[string]func(http.Handler) http.Handler{
		"net/http": mcplimit.HTTP, "another server": onAnotherServer, "in a Local context": inLocalContext,
	} {
		t.Run(name, func(t *testing.T) {
			s := session(t, &mcp.SSEClientTransport{Endpoint: overSSE(t, around)})
			for range 2 {
				wantCode(t, s, "search", http.StatusUnauthorized)
			}
		})
	}
}

func inLocalContext(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.ServeHTTP(w, r.WithContext(mcplimit.Local(r.Context())))
	})
}

// onAnotherServer shows a handler a request as fasthttp's adaptor does, without an http.Server.
func onAnotherServer(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mcplimit.HTTP(h).ServeHTTP(w, r.WithContext(noServer{r.Context()}))
	})
}

type noServer struct{ context.Context }

func (c noServer) Value(key any) any {
	if key == http.ServerContextKey {
		return nil
	}
	return c.Context.Value(key)
}

// A handler outside of an http.Server has no ServerContextKey.
func TestNobodyIsLoggedInOverStreamableHTTP(t *testing.T) {
	h := inLocalContext(streamable(loginServer(t), stateless))
	r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(one))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	if !strings.Contains(w.Body.String(), `"code":401`) {
		t.Errorf("status %d: %s, want the code 401", w.Code, w.Body)
	}
}

func TestTokenOverSSE(t *testing.T) {
	url := overSSE(t, auth.RequireBearerToken(verify, nil))
	for _, user := range []string{"alice", "bob"} {
		s := session(t, &mcp.SSEClientTransport{Endpoint: url, HTTPClient: &http.Client{Transport: &sent{token: user}}})
		wantAllowed(t, s, "search")
		wantCode(t, s, "search", http.StatusTooManyRequests)
	}
}

// A client that connects with Local is the process, whichever session it has. Any other is nobody.
func TestTheProcessIsLoggedIn(t *testing.T) {
	server := loginServer(t)
	connect := func(ctx context.Context) *mcp.ClientSession {
		here, there := mcp.NewInMemoryTransports()
		if _, err := server.Connect(ctx, here, nil); err != nil {
			t.Fatal(err)
		}
		return session(t, there)
	}
	wantCode(t, connect(t.Context()), "search", http.StatusUnauthorized)
	wantAllowed(t, connect(mcplimit.Local(t.Context())), "search")
	wantCode(t, connect(mcplimit.Local(t.Context())), "search", http.StatusTooManyRequests)
}
