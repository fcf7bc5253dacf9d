package mcplimit

import (
	"context"
	"crypto/rand"
	"net/http"
	"net/netip"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/adapter"
)

// Caller counts by principal, and by address for callers who have none. The principal is the [User].
func Caller(r core.Request) (string, error) {
	user, err := User(r)
	if err != nil || user == "" {
		return "", err
	}
	return "user:" + user, nil
}

// User is an Options.Identify for rules with NeedLogin: it returns the UserID of the SDK's
// auth.TokenInfo. A call of a session in a [Local] context has the process itself as its user.
func User(r core.Request) (string, error) {
	user, _ := r.Value(principal{}).(string)
	return user, nil
}

// principal is the key of a call's user in its view.
type principal struct{}

// Local returns a context for Server.Run or Server.Connect. Its clients have the process itself as
// their user, and need no login. Use it over stdio and in memory: the SDK does not show how a call
// came, so without Local nobody is logged in there. Danger: do not use it for clients on a network
// connection, which would all be logged in as the process.
//
//	server.Run(mcplimit.Local(ctx), new(mcp.StdioTransport))
func Local(ctx context.Context) context.Context { return context.WithValue(ctx, local{}, process) }

// local is the key of the process in the context of a Local session.
type local struct{}

// process is the user of calls in Local sessions.
var process = "process:" + rand.Text()

type view struct {
	ctx    context.Context
	path   string
	unsure bool              // the caller may have made up the name in the path
	extra  *mcp.RequestExtra // nil unless the call came over streamable HTTP
	reply  *reply
}

func newView(ctx context.Context, method string, req mcp.Request) *view {
	v := &view{ctx: ctx, path: pathOf(method, req.GetParams()), extra: req.GetExtra()}
	v.reply = replyTo(v.header())
	return v
}

// pathOf returns the method and what it calls.
func pathOf(method string, params mcp.Params) string {
	switch p := params.(type) {
	case *mcp.CallToolParamsRaw:
		return "/" + method + "/" + p.Name
	case *mcp.GetPromptParams:
		return "/" + method + "/" + p.Name
	default:
		return "/" + method
	}
}

// methodOf returns the method of a handler with these parameters, or "" for a custom one.
func methodOf(params mcp.Params) string {
	switch params.(type) {
	case *mcp.CallToolParamsRaw:
		return "tools/call"
	case *mcp.GetPromptParams:
		return "prompts/get"
	case *mcp.ReadResourceParams:
		return "resources/read"
	default:
		return ""
	}
}

func (v *view) header() http.Header {
	if v.extra == nil {
		return nil
	}
	return v.extra.Header
}

// user returns the principal. The context of a session holds the token of its first request, so
// over streamable HTTP only the call's own token counts. Over SSE the SDK shows no other.
func (v *view) user() string {
	var token *auth.TokenInfo
	if v.extra != nil {
		token = v.extra.TokenInfo
	} else {
		token = auth.TokenInfoFromContext(v.ctx)
	}
	if token != nil && token.UserID != "" {
		return token.UserID
	}
	if itself, ok := v.ctx.Value(local{}).(string); ok && !v.isHTTP() {
		return itself
	}
	return ""
}

// isHTTP reports whether a call in a Local context came by HTTP all the same, as it may if a server
// has one context for all. A call over SSE has no extra, but behind net/http its session has the
// context of the request that began it.
func (v *view) isHTTP() bool { return v.extra != nil || v.ctx.Value(http.ServerContextKey) != nil }

func (v *view) Context() context.Context             { return v.ctx }
func (v *view) Method() string                       { return "" }
func (v *view) Path() string                         { return v.path }
func (v *view) Route() string                        { return v.path }
func (v *view) RouteUnsure() bool                    { return v.unsure }
func (v *view) Header(name string) []string          { return v.header().Values(name) }
func (v *view) Query(string) string                  { return "" }
func (v *view) Param(string) string                  { return "" }
func (v *view) Size() int64                          { return -1 }
func (v *view) ResponseHeader() adapter.HeaderWriter { return v.reply }

// Value returns the call's user for its key, and otherwise what is in the context.
func (v *view) Value(key any) any {
	if key == (principal{}) {
		return v.user()
	}
	return v.ctx.Value(key)
}

// Cookie implements adapter.View.
func (v *view) Cookie(name string) string {
	r := http.Request{Header: v.header()}
	cookie, err := r.Cookie(name)
	if err != nil {
		return ""
	}
	return cookie.Value
}

// Host returns the host of the call's HTTP request, inside of HTTP.
func (v *view) Host() string {
	_, _, host := marked(v.header())
	return host
}

// RemoteAddr returns the peer of the call's HTTP request, inside of HTTP.
func (v *view) RemoteAddr() netip.Addr {
	_, remote, _ := marked(v.header())
	return adapter.PeerAddr(remote)
}

// PeerHidden implements adapter.HiddenPeerView: outside of HTTP, the zero RemoteAddr may stand for a
// peer on the network, and the headers that say otherwise are the caller's own.
func (v *view) PeerHidden() bool {
	id, _, _ := marked(v.header())
	return id == ""
}
