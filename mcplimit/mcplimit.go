// Package mcplimit attaches access limits to servers of the Model Context Protocol that are written
// with github.com/modelcontextprotocol/go-sdk.
//
//	server.AddReceivingMiddleware(mcplimit.New(limiter,
//		core.Rule{Name: "server", Seconds: 60, MaxCount: 100},
//		core.Rule{Seconds: 60, MaxCount: 5, Paths: []string{"/tools/call/search"}},
//	))
//	http.ListenAndServe(":8080", mcplimit.HTTP(mcp.NewStreamableHTTPHandler(getServer, nil)))
//
// A path is the method, and for a tool or a prompt its name: /tools/call/search, /resources/read. A
// rule without a Name counts each path by itself. Callers can make up names, so until a tool or a
// prompt has answered without an error in this process, it is among the core.OtherNames in Stats,
// and Reset and Inspect do not know it. Danger: a rule without a Name refuses no flood of made-up
// names, so add one with a Name.
//
// A call is counted for the [Caller], never for the session, which any client can open anew. Over
// stdio, serve in a [Local] context. Each call of a batch counts. Malformed messages and unknown
// methods are not counted, because the SDK answers them before any middleware. Nor are
// notifications, which have no reply, and, unless [Options].All is set, initialize,
// server/discover, ping, the lists and subscriptions/listen. From revision 2026-07-28 on, each
// round of a call that asks for input counts: any client can send inputResponses, so they are no
// proof of an earlier round.
//
// A refusal is a JSON-RPC error whose data has retryAfter, in seconds, if waiting helps. Inside of
// [HTTP] it has the status 429 and Retry-After, too. The SDK's own client, up to v1.8.0, replaces the
// body of a 429 by the words Too Many Requests, unless [Options].StatusOK is set. In a batch, and
// with an EventStore, whose streams begin before the decision, the status stays 200.
//
// A rule with Count receives the code of the JSON-RPC error, 0 for a result, -32603 for an error
// without a code and a tool's result with IsError, and 13 for a panic, which ends the process unless a
// middleware inside recovers. A slot of Concurrency is held until the handler returns, also after its
// caller has left. With sessions, the values in a context are those of the request that opened the
// session. nethttplimit around the SDK's handler counts messages and streams of events, not calls.
package mcplimit

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/accesslimit/accesslimit/core"
)

// Options change what a middleware refuses, and how.
type Options struct {
	// Code is the code of the JSON-RPC error for a caller over a limit. The default is 429. Other
	// refusals have their HTTP status as the code: 401, 503 and so on. Danger: codes from -32768 to
	// -32000 are reserved for the protocols.
	Code int64
	// All also limits initialize, server/discover, ping, the lists and subscriptions/listen. Danger: a
	// client that cannot initialize or list the tools has no tools, and one that listens holds a slot
	// of Concurrency until it leaves.
	All bool
	// StatusOK makes HTTP answer 200 in place of 429 and 503, so that clients read the JSON-RPC error.
	// The SDK's own client, up to v1.8.0, takes both for failures of the transport, and hides the
	// message and retryAfter. Danger: proxies and access logs take refusals for successes.
	StatusOK bool
}

// New returns a middleware that decides by these rules together, with the default Options. It
// panics with a *core.RuleError if a rule is wrong.
func New(limiter *core.Limiter, rules ...core.Rule) mcp.Middleware {
	return Options{}.New(limiter, rules...)
}

// With returns a middleware that decides by a guard, with the default Options.
func With(guard *core.Guard) mcp.Middleware { return Options{}.With(guard) }

// New is the function New with these Options. A rule without Key and NeedLogin counts by [Caller].
func (o Options) New(limiter *core.Limiter, rules ...core.Rule) mcp.Middleware {
	rules = append([]core.Rule(nil), rules...)
	for i, rule := range rules {
		if rule.Key == nil && !rule.NeedLogin {
			rules[i].Key = Caller
		}
	}
	return o.With(limiter.MustGuard(rules...))
}

// With is the function With with these Options. Rules of the guard that are for each caller need
// [Caller] as their Key.
func (o Options) With(guard *core.Guard) mcp.Middleware {
	return func(next mcp.MethodHandler) mcp.MethodHandler {
		var answered names
		return func(ctx context.Context, method string, req mcp.Request) (result mcp.Result, err error) {
			if strings.HasPrefix(method, "notifications/") || !o.All && isFree(method) {
				return next(ctx, method, req)
			}
			v := newView(ctx, method, req)
			v.unsure = hasName(req.GetParams()) && !answered.has(v.path)
			answer := guard.Check(v)
			if answer.Refusal != nil {
				return nil, o.refuse(v.reply, answer.Refusal)
			}
			if answer.Context != nil {
				ctx = answer.Context
			}
			answer.Run(func() (status int) {
				result, err = next(ctx, method, req)
				status = outcome(result, err)
				if v.unsure && status == 0 {
					answered.add(v.path)
				}
				return status
			})
			return result, err
		}
	}
}

// isFree reports whether a method is one that clients need before they can do anything.
func isFree(method string) bool {
	switch method {
	case "initialize", "server/discover", "ping", "subscriptions/listen",
		"tools/list", "prompts/list", "resources/list", "resources/templates/list":
		return true
	default:
		return false
	}
}

// Allow decides by a check inside a handler, for a subject that only the handler knows. An empty
// subject keeps each rule's own key. If the call may not go on, Allow returns the error that the
// handler must return. Its code is that of the default Options.
func Allow(ctx context.Context, req mcp.Request, check *core.Check, subject string) error {
	v := newView(ctx, methodOf(req.GetParams()), req)
	if answer := check.Allow(v, subject); answer.Refusal != nil {
		return Options{}.refuse(v.reply, answer.Refusal)
	}
	return nil
}

// OwnLimits returns what is left of the caller's own limits, and charges nothing, for a tool that
// shows callers their limits. The error is that of a caller whose limits cannot be shown. See
// core.Guard.OwnLimits.
func OwnLimits(ctx context.Context, req mcp.Request, guard *core.Guard) ([]core.Decision, error) {
	v := newView(ctx, methodOf(req.GetParams()), req)
	own := guard.OwnLimits(v)
	if own.Refusal != nil {
		return nil, Options{}.refuse(v.reply, own.Refusal)
	}
	return own.Limits, nil
}

// outcome returns the code that a call ends with.
func outcome(result mcp.Result, err error) (code int) {
	if tool, ok := result.(*mcp.CallToolResult); err == nil && (!ok || tool == nil || !tool.IsError) {
		return 0
	}
	var coded *jsonrpc.Error
	if errors.As(err, &coded) && coded.Code != 0 {
		return int(coded.Code)
	}
	return jsonrpc.CodeInternalError
}

// refusalData is the data of the JSON-RPC error of a refusal.
type refusalData struct {
	RetryAfter json.Number `json:"retryAfter,omitempty"` // in seconds
	Violated   []string    `json:"violatedPolicies,omitempty"`
	Reference  string      `json:"reference,omitempty"`
}

// refuse returns the error of a refusal, and tells the HTTP reply of its status.
func (o Options) refuse(reply *reply, r *core.Refusal) error {
	code := int64(r.Status)
	if r.Status == http.StatusTooManyRequests && o.Code != 0 {
		code = o.Code
	}
	r.SetHeader(reply)
	data, _ := json.Marshal(refusalData{ // it cannot fail, because Retry-After is a number or missing
		RetryAfter: json.Number(reply.Get("Retry-After")), Violated: r.Violated, Reference: r.Reference,
	})
	reply.refuse(r.Status, code)
	return &jsonrpc.Error{Code: code, Message: r.Message, Data: data}
}
