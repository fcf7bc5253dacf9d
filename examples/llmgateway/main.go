// Command llmgateway stands before a language model, and limits its use: requests and tokens by user
// and by team, and what a team may cost in a month. A call is charged an estimate before it is
// forwarded, and settled when the model says what it has used. If the caller hangs up, or the model
// breaks off, that is not known, and what was charged stays.
//
// If JOURNAL names a file, it notes there what it does with each bill.
package main

import (
	"context"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"time"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/examples/internal/example"
	"github.com/accesslimit/accesslimit/nethttplimit"
)

const about = `
  POST /generate   1,000 requests in a minute for a user, 10,000 for a team
                   200,000 tokens in and 20,000 out in a day for a user, 50 times as many for a team
                   50 dollars in a month for a team

Try:

  curl -N -H 'Authorization: Bearer acme/alice' URL/generate -d '{"prompt": "Why is the sky blue?", "max_tokens": 300}'

`

func main() {
	if err := run(); err != nil {
		log.Fatal(err)
	}
}

func run() error {
	// A token is a team and a user here. A service verifies its tokens.
	limiter, err := example.LimiterFor(core.BearerToken(func(_ context.Context, token string) (string, error) { return token, nil }))
	if err != nil {
		return err
	}
	defer limiter.Close()
	journal, err := openJournal(os.Getenv("JOURNAL"))
	if err != nil {
		return err
	}
	model := httptest.NewServer(http.HandlerFunc(generate))
	defer model.Close()
	requests := nethttplimit.New(limiter,
		core.Rule{Name: "requests", Limit: core.PerMinute(1000), NeedLogin: true},
		core.Rule{Name: "team-requests", Limit: core.PerMinute(10_000), NeedLogin: true, Key: func(r core.Request) (string, error) {
			user, err := r.User()
			return byTeam(user), err
		}},
	)
	g := &gateway{meters: meters(limiter), journal: journal, model: model.URL}
	defer g.settling.Wait()
	mux := http.NewServeMux()
	mux.Handle("GET /healthz", example.Health(limiter))
	mux.Handle("POST /generate", requests(g))
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	return example.Serve(about, server.Serve, server.Shutdown)
}
