package mcplimit_test

import (
	"context"
	"fmt"
	"log"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/mcplimit"
)

// Each client may call each tool twice a minute, and the whole server ten times. A rule without a
// Name and Paths counts each tool by itself; with Paths, all that they match share a counter. Over
// HTTP, put mcplimit.HTTP around the SDK's handler.
func Example() {
	limiter, err := core.New(core.Options{}) // with Redis, all processes of the server share the counters
	if err != nil {
		log.Fatal(err)
	}
	defer limiter.Close()

	server := mcp.NewServer(&mcp.Implementation{Name: "weather", Version: "1"}, nil)
	for _, name := range []string{"forecast", "history"} {
		mcp.AddTool(server, &mcp.Tool{Name: name}, func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
			return &mcp.CallToolResult{}, nil, nil
		})
	}
	server.AddReceivingMiddleware(mcplimit.New(limiter,
		core.Rule{Seconds: 60, MaxCount: 2},
		core.Rule{Name: "server", Seconds: 60, MaxCount: 10},
	))

	ctx := context.Background()
	here, there := mcp.NewInMemoryTransports()
	if _, err = server.Connect(mcplimit.Local(ctx), here, nil); err != nil {
		log.Fatal(err)
	}
	client, err := mcp.NewClient(&mcp.Implementation{Name: "model", Version: "1"}, nil).Connect(ctx, there, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = client.Close() }()
	for _, name := range []string{"forecast", "forecast", "forecast", "history"} {
		_, err = client.CallTool(ctx, &mcp.CallToolParams{Name: name})
		fmt.Println(name, err == nil)
	}
	// Output:
	// forecast true
	// forecast true
	// forecast false
	// history true
}
