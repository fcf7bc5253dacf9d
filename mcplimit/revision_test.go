package mcplimit_test

import (
	"context"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/internal/bounded"
	"github.com/accesslimit/accesslimit/internal/extensiontest"
	"github.com/accesslimit/accesslimit/mcplimit"
)

// newest connects the SDK's own client, which speaks the newest revision.
func newest(t *testing.T, server *mcp.Server, options mcp.ClientOptions) *mcp.ClientSession {
	t.Helper()
	url := serving(t, server, mcp.StreamableHTTPOptions{Stateless: true}, false)
	s, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, &options).Connect(t.Context(), overHTTP(url, new(sent)), nil)
	if err != nil {
		t.Fatal(err)
	}
	bounded.Cleanup(t, func() { _ = s.Close() })
	if got := s.InitializeResult().ProtocolVersion; got != revision {
		t.Fatalf("the client speaks revision %s, want %s", got, revision)
	}
	return s
}

// A client that listens for changes of the tools holds no slot.
func TestListeningHoldsNoSlot(t *testing.T) {
	listening := make(chan struct{}, 1)
	server := tools(mcplimit.New(extensiontest.NewLimiter(t, core.Options{}), core.Rule{Name: "slots", Limit: core.InFlight(1)}),
		func(next mcp.MethodHandler) mcp.MethodHandler {
			return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
				if method == "subscriptions/listen" {
					listening <- struct{}{}
				}
				return next(ctx, method, req)
			}
		})
	s := newest(t, server, mcp.ClientOptions{ToolListChangedHandler: func(context.Context, *mcp.ToolListChangedRequest) {}})
	select {
	case <-listening:
	case <-time.After(time.Minute):
		t.Fatal("the client does not listen")
	}
	wantAllowed(t, s, "search")
}

// Each round of a call that asks for input counts.
func TestEachRoundCounts(t *testing.T) {
	server := tools(mcplimit.New(extensiontest.NewLimiter(t, core.Options{}), perTool(3)))
	mcp.AddTool(server, &mcp.Tool{Name: "ask"}, func(_ context.Context, r *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, any, error) {
		if r.Params.InputResponses == nil {
			return &mcp.CallToolResult{InputRequests: mcp.InputRequestMap{"sure": &mcp.ElicitParams{Message: "Sure?"}}}, nil, nil
		}
		return &mcp.CallToolResult{}, nil, nil
	})
	rounds := 0
	s := newest(t, server, mcp.ClientOptions{ElicitationHandler: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
		rounds++
		return &mcp.ElicitResult{Action: "accept"}, nil
	}})
	wantAllowed(t, s, "ask")
	wantRefused(t, s, "ask") // in its second round
	if rounds != 2 {
		t.Errorf("the client was asked %d times, want twice", rounds)
	}
}
