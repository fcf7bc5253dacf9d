package mcplimit_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/adaptertest"
	"github.com/accesslimit/accesslimit/mcplimit"
)

func TestAdapter(t *testing.T) {
	adaptertest.Run(t, adaptertest.Adapter{Serve: serve, Connect: connect, RPC: true, Endings: endings})
}

// limits has the code by which the suite knows an RPC's refusals.
var limits = mcplimit.Options{Code: 8}

var endings = []adaptertest.Ending{
	{Name: "an error without a code", Outcome: jsonrpc.CodeInternalError, Handle: failing(io.ErrUnexpectedEOF)},
	{Name: "a wrapped error", Outcome: 5, Handle: failing(fmt.Errorf("no page: %w", &jsonrpc.Error{Code: 5}))},
}

func failing(err error) func(adaptertest.Handling) {
	return func(h adaptertest.Handling) { h.(*handling).err = err }
}

// serve makes a custom method of each path.
func serve(_ testing.TB, l net.Listener, app adaptertest.App) (stop func()) {
	server := mcp.NewServer(&mcp.Implementation{Name: "test"}, &mcp.ServerOptions{Logger: slog.New(slog.DiscardHandler)})
	handlers := make(map[string]mcp.MethodHandler)
	for _, route := range app.Routes {
		method := strings.TrimPrefix(route.Path, "/")
		handlers[method] = handler(route)
		if err := mcp.AddReceivingCustomMethod(server, method, unused); err != nil {
			panic(err)
		}
	}
	server.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
			if handle := handlers[method]; handle != nil {
				return handle(ctx, method, req)
			}
			return next(ctx, method, req)
		}
	})
	for _, rules := range slices.Backward(app.Use) {
		server.AddReceivingMiddleware(limits.New(app.Limiter, rules...))
	}
	server.AddReceivingMiddleware(recovered, func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
			return next(app.Enter(ctx), method, req)
		}
	})
	return adaptertest.ServeHTTP(l, mcplimit.HTTP(streamable(server, stateless)))
}

var stateless = mcp.StreamableHTTPOptions{Stateless: true, DisableLocalhostProtection: true, PropagateRequestCancellation: true}

func streamable(server *mcp.Server, options mcp.StreamableHTTPOptions) http.Handler {
	options.Logger = slog.New(slog.DiscardHandler)
	return mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, &options)
}

type params struct{ mcp.ParamsBase }

type reply struct {
	mcp.ResultBase
	Text string `json:"text"`
}

func unused(context.Context, *mcp.ServerSession, *params) (*reply, error) { return new(reply), nil }

// handler runs a route inside of its own limits.
func handler(route adaptertest.Route) mcp.MethodHandler {
	handle := func(ctx context.Context, _ string, req mcp.Request) (mcp.Result, error) {
		h := &handling{ctx: ctx, req: req}
		route.Serve(h)
		if h.err != nil {
			return nil, h.err
		}
		return &reply{Text: h.text}, nil
	}
	if route.Recovers {
		handle = recovered(handle)
	}
	for _, guard := range slices.Backward(route.Guards) {
		handle = limits.With(guard)(handle)
	}
	return handle
}

func recovered(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (result mcp.Result, err error) {
		defer func() {
			if caught := recover(); caught != nil {
				result, err = nil, &jsonrpc.Error{Code: 13, Message: fmt.Sprint(caught)}
			}
		}()
		return next(ctx, method, req)
	}
}

type handling struct {
	ctx  context.Context
	req  mcp.Request
	text string
	err  error
}

func (h *handling) Context() context.Context { return h.ctx }
func (h *handling) Reply(status int) {
	if code := map[int]int64{401: 16, 404: 5, 500: 13}[status]; code != 0 {
		h.err = &jsonrpc.Error{Code: code, Message: "replied"}
	}
}
func (h *handling) Allow(check *core.Check, subject string) bool {
	h.err = mcplimit.Allow(h.ctx, h.req, check, subject)
	return h.err == nil
}
func (h *handling) OwnLimits(guard *core.Guard) {
	own, err := mcplimit.OwnLimits(h.ctx, h.req, guard)
	if h.err = err; err != nil {
		return
	}
	h.text = adaptertest.OwnLimitsText(own)
}
func (h *handling) Header(name string) string { return h.req.GetExtra().Header.Get(name) }
func (h *handling) Cookie(string) string      { return "" }
func (h *handling) Query(string) string       { return "" }
func (h *handling) Flush()                    {}
func (h *handling) Text(text string)          { h.text = text }

// client sends each call as a POST of the newest revision, and reads what an SDK would hide.
type client struct{ http.Client }

func connect(_ testing.TB, dial adaptertest.Dial) adaptertest.Client {
	return &client{http.Client{Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return dial(ctx) },
	}}}
}

// Close implements adaptertest.Client.
func (c *client) Close() { c.CloseIdleConnections() }

// Do implements adaptertest.Client.
func (c *client) Do(t testing.TB, call adaptertest.Call) adaptertest.Reply {
	t.Helper()
	method := strings.TrimPrefix(call.Path, "/")
	message, _ := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": 1, "method": method, "params": map[string]any{"_meta": map[string]any{
		mcp.MetaKeyProtocolVersion: revision, mcp.MetaKeyClientInfo: map[string]any{"name": "test", "version": "1"}, mcp.MetaKeyClientCapabilities: struct{}{},
	}}})
	request, err := http.NewRequestWithContext(call.Until(), http.MethodPost, "http://service.test/", bytes.NewReader(message))
	if err != nil {
		t.Fatal(err)
	}
	request.Header, request.Host = call.Header.Clone(), call.Host
	for i, value := range request.Header[binary] {
		request.Header[binary][i] = url.QueryEscape(value)
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Accept", "application/json, text/event-stream")
	request.Header.Set("Mcp-Protocol-Version", revision)
	request.Header.Set("Mcp-Method", method)
	response, err := c.Client.Do(request)
	if err == nil {
		defer response.Body.Close()
		var body []byte
		if body, err = io.ReadAll(response.Body); err == nil {
			return read(t, response, body)
		}
	}
	if call.Until().Err() == nil {
		t.Fatalf("%s: no reply: %v", call.Path, err)
	}
	return adaptertest.Reply{}
}

const (
	revision = "2026-07-28"
	binary   = "X-Key-Bin" // the suite sends any bytes in this header, which HTTP cannot
)

// grpcCode and httpStatus translate outcomes for the suite, whose RPCs have gRPC's codes.
var (
	grpcCode   = map[int64]int{8: 8, 429: 8, 401: 16, 503: 14, 400: 3, 413: 3}
	unnamed    = int64(0) // the SDK sends this code for an error without one
	httpStatus = map[int64]int{16: 401, 5: 404, jsonrpc.CodeMethodNotFound: 404, 13: 500, 0: 500}
)

// read translates the reply to a call.
func read(t testing.TB, response *http.Response, body []byte) adaptertest.Reply {
	t.Helper()
	r := message(t, body)
	got := adaptertest.Reply{Status: response.StatusCode, Header: response.Header, Body: r.Result.Text}
	if r.Error == nil {
		return got
	}
	if r.Error.Code == unnamed {
		r.Error.Code = jsonrpc.CodeInternalError
	}
	got.Body, got.Violated, got.Outcome = r.Error.Message, r.Error.Data.ViolatedPolicies, int(r.Error.Code)
	if code, refused := grpcCode[r.Error.Code]; refused {
		got.Outcome = code
	} else if got.Status = httpStatus[r.Error.Code]; got.Status == 0 {
		got.Status = 500
	}
	return got
}

// response is a JSON-RPC response.
type response struct {
	Result struct{ Text string }
	Error  *struct {
		Code    int64
		Message string
		Data    struct {
			RetryAfter       int64
			ViolatedPolicies []string
			Reference        string
		}
	}
}

// message reads a response, as it is or in an event.
func message(t testing.TB, body []byte) (r response) {
	t.Helper()
	if _, data, ok := bytes.Cut(body, []byte("data: ")); ok && !bytes.HasPrefix(body, []byte("{")) {
		body = data
	}
	if err := json.Unmarshal(body, &r); err != nil {
		t.Fatalf("%v: %q", err, body)
	}
	return r
}
