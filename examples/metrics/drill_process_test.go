package main

import (
	"context"
	"fmt"
	"log"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/console"
	"github.com/accesslimit/accesslimit/core/operate"
	"github.com/accesslimit/accesslimit/core/rulefile"
	"github.com/accesslimit/accesslimit/nethttplimit"
)

// The test binary is also the program of the drill's processes, if these are set.
const (
	drillAddr, drillRedis, drillDocument = "DRILL_ADDR", "DRILL_REDIS", "DRILL_DOCUMENT"
)

func TestMain(m *testing.M) {
	if os.Getenv(drillAddr) != "" {
		log.Fatal(runProcess())
	}
	os.Exit(m.Run())
}

// drillRules are the rules of the drill's document: one for each policy.
func drillRules(limit int) string {
	text := "version: 1\nrules:\n"
	for _, policy := range [][2]string{{"open", "fail_open"}, {"closed", "fail_closed"}, {"local", "count_locally 0.5"}} {
		text += fmt.Sprintf("  - {name: %s, limit: %d/h, key: global, on_store_error: %s}\n", policy[0], limit, policy[1])
	}
	return text
}

// runProcess is a service that follows a document, bans somebody, calls itself, and shows its
// metrics and the operators' page.
func runProcess() error {
	redis.SetLogger(silent{})
	client := redis.NewClient(&redis.Options{Addr: os.Getenv(drillRedis), DialerRetries: 1})
	limiter, err := core.New(core.Options{Redis: client, Timeout: 2 * time.Second, Logger: slog.New(slog.NewJSONHandler(os.Stderr, nil))})
	if err != nil {
		return err
	}
	document, err := rulefile.NewDocument(client, os.Getenv(drillDocument))
	if err != nil {
		return err
	}
	var fallback []core.Rule
	for _, name := range []string{"open", "closed", "local"} {
		fallback = append(fallback, core.Rule{Name: name, Limit: core.PerHour(3_000_000), Key: core.Global})
	}
	set, err := rulefile.Follow(limiter, rulefile.Functions{}, document, rulefile.Rules(fallback...))
	if err != nil {
		return err
	}
	if _, err := operate.New(limiter).Ban(context.Background(), "open", "user:mallory", time.Hour); err != nil {
		return err
	}
	for _, name := range set.Names() {
		go callAlways(nethttplimit.With(set.MustGuard(name))(http.NotFoundHandler()))
	}
	viewer := func(*http.Request) (console.Identity, error) {
		return console.Identity{Name: "drill", Role: console.Viewer}, nil
	}
	page, err := console.New(limiter, console.Options{Authorize: viewer})
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.Handle("/limits/", page)
	if err := addMetrics(mux, map[string]*core.Limiter{"default": limiter}); err != nil {
		return err
	}
	return http.ListenAndServe(os.Getenv(drillAddr), mux)
}

// callAlways calls a handler several times a second.
func callAlways(handler http.Handler) {
	for {
		handler.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil))
		time.Sleep(100 * time.Millisecond)
	}
}
