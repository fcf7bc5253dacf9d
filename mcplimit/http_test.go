package mcplimit_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/internal/bounded"
	"github.com/accesslimit/accesslimit/internal/extensiontest"
	"github.com/accesslimit/accesslimit/internal/redistest"
	"github.com/accesslimit/accesslimit/mcplimit"
	"github.com/accesslimit/accesslimit/nethttplimit"
)

// No client can choose the address that HTTP passes on, also not where HTTP is missing.
func TestForgedMark(t *testing.T) {
	server := func() *mcp.Server {
		return tools(mcplimit.New(extensiontest.NewLimiter(t, core.Options{}), perTool(1)))
	}
	bare := httptest.NewServer(streamable(server(), stateless))
	bounded.Cleanup(t, bare.Close)
	for _, url := range []string{bare.URL, serving(t, server(), stateless, false)} {
		for i := range 3 {
			_, body := post(t, url, one, "mcplimit-call", "none", fmt.Sprintf("192.0.2.%d:1", i), "host")
			if refused := strings.Contains(body, `"code":429`); refused != (i > 0) {
				t.Errorf("call %d: %s", i, body)
			}
		}
	}
}

// Without HTTP it is not known that a call came through a unix socket, so its caller is not believed.
func TestForgedAddressWithoutHTTP(t *testing.T) {
	limiter := extensiontest.NewLimiter(t, core.Options{ClientIP: core.ClientIP{TrustedProxies: []string{"unix"}}})
	bare := httptest.NewServer(streamable(tools(mcplimit.New(limiter, perTool(1))), stateless))
	bounded.Cleanup(t, bare.Close)
	for i := range 3 {
		_, body := post(t, bare.URL, one, "X-Forwarded-For", fmt.Sprintf("192.0.2.%d", i))
		if refused := strings.Contains(body, `"code":429`); refused != (i > 0) {
			t.Errorf("call %d: %s", i, body)
		}
	}
}

// Inside of HTTP, a proxy on a unix socket is believed.
func TestProxyOnUnixSocket(t *testing.T) {
	limiter := extensiontest.NewLimiter(t, core.Options{ClientIP: core.ClientIP{TrustedProxies: []string{"unix"}}})
	h := mcplimit.HTTP(streamable(tools(mcplimit.New(limiter, perTool(1))), stateless))
	for i, client := range []string{"192.0.2.1", "192.0.2.2", "192.0.2.1"} {
		r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(one))
		r.RemoteAddr = "@"
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Accept", "application/json, text/event-stream")
		r.Header.Set("X-Forwarded-For", client)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if want := []int{200, 200, 429}[i]; w.Code != want {
			t.Errorf("call %d of %s: status %d, want %d", i, client, w.Code, want)
		}
	}
}

const one = `{"jsonrpc":"2.0","id":"a","method":"tools/call","params":{"name":"search","arguments":{}}}`

// post sends a message as a client of an early revision does.
func post(t *testing.T, url, message string, header ...string) (status int, body string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(message))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	if len(header) > 0 {
		r.Header[header[0]] = header[1:]
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	all, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(all)
}

// The headers of a middleware around HTTP stay, and each limit has its entry.
func TestHeadersOfBothMiddlewares(t *testing.T) {
	limiter := extensiontest.NewLimiter(t, core.Options{})
	inside := mcplimit.HTTP(streamable(tools(mcplimit.New(limiter, core.Rule{Name: "inner", Seconds: 600, MaxCount: 5})), stateless))
	outside := nethttplimit.New(limiter, core.Rule{Name: "outer", Seconds: 600, MaxCount: 9})
	w := httptest.NewRecorder()
	r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(one))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	outside(inside).ServeHTTP(w, r)
	if lines := strings.Join(w.Header().Values("Ratelimit"), ", "); w.Code != 200 || !strings.Contains(lines, `"outer"`) || !strings.Contains(lines, `"inner"`) {
		t.Errorf("status %d, RateLimit %q, want 200, outer and inner", w.Code, lines)
	}
}

func TestEachCallOfABatchCounts(t *testing.T) {
	for name, options := range kinds {
		if !options.Stateless {
			continue
		}
		t.Run(name, func(t *testing.T) {
			url := serving(t, tools(mcplimit.New(extensiontest.NewLimiter(t, core.Options{}), perTool(3))), options, false)
			var calls []string
			for i := range 10 {
				calls = append(calls, strings.Replace(one, `"a"`, fmt.Sprint(i), 1))
			}
			for _, want := range []int{3, 0} {
				status, body := post(t, url, " ["+strings.Join(calls, ",")+"]")
				if passed, refused := strings.Count(body, `"result"`), strings.Count(body, `"code":429`); status != 200 || passed != want || refused != 10-want {
					t.Errorf("status %d, %d calls passed and %d were refused, want 200, %d and %d: %s", status, passed, refused, want, 10-want, body)
				}
			}
		})
	}
}

// A flood of made-up tools changes nothing for those that exist, also where another process was not
// flooded, and leaves one name in Stats.
func TestMadeUpTools(t *testing.T) {
	rdb := redistest.Start(t).Client(t)
	var calls []string
	for i := range 2100 {
		calls = append(calls, strings.Replace(strings.Replace(one, `"a"`, fmt.Sprint(i), 1), "search", fmt.Sprint("made up ", i), 1))
	}
	start := func() (*core.Limiter, string) {
		limiter := extensiontest.NewLimiter(t, core.Options{Redis: rdb})
		server := tools(mcplimit.New(limiter, perTool(5), core.Rule{Name: "caller", Seconds: 600, MaxCount: 20}))
		return limiter, serving(t, server, mcp.StreamableHTTPOptions{Stateless: true, JSONResponse: true}, true)
	}
	flooded, first := start()
	_, second := start()
	if _, body := post(t, first, "["+strings.Join(calls, ",")+"]", "Authorization", "Bearer mallory"); strings.Count(body, "unknown tool") != 20 {
		t.Fatalf("want 20 calls of unknown tools: %.1000s", body)
	}
	alice := func(url string) *mcp.ClientSession { return session(t, overHTTP(url, &sent{token: "alice"})) }
	sessions := []*mcp.ClientSession{alice(first), alice(second)}
	for _, tool := range []string{"search", "write"} {
		for i := range 10 {
			if err := call(t, sessions[i%2], tool); (err == nil) != (i < 5) {
				t.Errorf("call %d of %s: %v", i, tool, err)
			}
		}
	}
	wantNames(t, flooded, "(other names)", "/tools/call/search", "/tools/call/write", "caller")
}

// wantNames checks which names of rules Stats shows.
func wantNames(t *testing.T, limiter *core.Limiter, want ...string) {
	t.Helper()
	names := make(map[string]bool)
	for _, d := range limiter.Stats().Decisions {
		names[d.Rule] = true
	}
	if got := slices.Sorted(maps.Keys(names)); !slices.Equal(got, want) {
		t.Errorf("Stats has the names %q, want %q", got, want)
	}
}

func TestOptions(t *testing.T) {
	options := mcplimit.Options{Code: -31999, All: true}
	server := tools(options.New(extensiontest.NewLimiter(t, core.Options{}), core.Rule{Name: "lists", Seconds: 600, MaxCount: 1, Paths: []string{"/tools/**"}}))
	url := serving(t, server, mcp.StreamableHTTPOptions{Stateless: true}, false)
	const list = `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`
	if status, body := post(t, url, list); status != 200 || !strings.Contains(body, `"tools"`) {
		t.Errorf("the first list: %d %s", status, body)
	}
	status, body := post(t, url, list)
	if r := message(t, []byte(body)); status != 429 || r.Error == nil || r.Error.Code != -31999 {
		t.Errorf("the second list: %d %s", status, body)
	}
}

// With StatusOK, the SDK's own client reads the refusal. A 401 stays, because clients begin to
// authorize at it.
func TestStatusOK(t *testing.T) {
	for name, options := range kinds {
		t.Run(name, func(t *testing.T) {
			limiter := extensiontest.NewLimiter(t, core.Options{Identify: mcplimit.User})
			login := core.Rule{Name: "login", Seconds: 600, NeedLogin: true, Paths: []string{"/tools/call/write"}}
			server := httptest.NewServer(mcplimit.Options{StatusOK: true}.HTTP(streamable(tools(mcplimit.New(limiter, perTool(1), login)), options)))
			bounded.Cleanup(t, server.Close)
			wire := new(sent)
			s := session(t, overHTTP(server.URL, wire))
			wantAllowed(t, s, "search")
			var refusal *jsonrpc.Error
			if err := wantRefused(t, s, "search"); !errors.As(err, &refusal) || refusal.Code != 429 ||
				!strings.Contains(refusal.Message, "Try again in") || !strings.Contains(string(refusal.Data), `"retryAfter":`) || wire.status.Load() != nil {
				t.Errorf("the refusal is %v, with the status %v", err, wire.status.Load())
			}
			wantCode(t, s, "write", http.StatusUnauthorized)
			if status := wire.status.Load(); status != 401 && options.EventStore == nil {
				t.Errorf("nobody is logged in, and the status is %v", status)
			}
		})
	}
}

// A middleware around may make a result of a refusal, which then is not sent as 429.
func TestRefusalAsAResult(t *testing.T) {
	limited := mcplimit.New(extensiontest.NewLimiter(t, core.Options{}), perTool(1))
	around := func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
			result, err := next(ctx, method, req)
			if err != nil {
				result = &mcp.CallToolResult{IsError: true, Content: []mcp.Content{&mcp.TextContent{Text: err.Error()}}}
			}
			return result, nil
		}
	}
	url := serving(t, tools(around, limited), mcp.StreamableHTTPOptions{Stateless: true}, false)
	for range 2 {
		if status, body := post(t, url, one); status != 200 {
			t.Errorf("status %d: %s", status, body)
		}
	}
}
