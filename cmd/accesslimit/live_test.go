package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/rogpeppe/go-internal/testscript"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/limittest"
	"github.com/accesslimit/accesslimit/core/rulefile"
	"github.com/accesslimit/accesslimit/nethttplimit"
)

// TestLive runs the scripts of the commands that act on a live Redis, each with a server of its own.
func TestLive(t *testing.T) {
	runScripts(t, "testdata/live", func(env *testscript.Env) error {
		server := limittest.StartRedis(t)
		env.Values["redis"] = server
		env.Setenv("REDIS_URL", "redis://"+server.Addr())
		env.Setenv("ACCESSLIMIT_AUTHOR", "bob@ops")
		env.Setenv("ACCESSLIMIT_TIMEOUT", "30s") // for a busy machine
		return nil
	})
}

// calls makes calls to a service with the rules of limits.yaml: calls 5 203.0.113.7 POST /login. The
// service ends behind them, so that what they have left in Redis is there. $REFERENCE is the
// reference of the last one, if it was refused.
func calls(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 4 {
		ts.Fatalf("usage: calls N ADDRESS METHOD PATH")
	}
	n, err := strconv.Atoi(args[0])
	ts.Check(err)
	url, err := redis.ParseURL(ts.Getenv("REDIS_URL"))
	ts.Check(err)
	client := redis.NewClient(url)
	defer client.Close()
	options := offline()
	options.Redis, options.Timeout = client, time.Minute
	options.ReferenceKeys, err = core.ParseReferenceKeys(ts.Getenv("REFERENCE_KEYS"))
	ts.Check(err)
	limiter, err := core.New(options)
	ts.Check(err)
	defer limiter.Close()
	rules, err := rulefile.Check(rulefile.Service{Functions: new(rulefile.Functions)}, ts.MkAbs("limits.yaml"))
	ts.Check(err)
	guard, err := rules.Attach(limiter)
	ts.Check(err)
	defer runtime.KeepAlive(guard)
	service := nethttplimit.With(guard)(http.NotFoundHandler())
	for range n {
		r := httptest.NewRequest(args[2], args[3], nil)
		r.RemoteAddr = args[1] + ":1234"
		r.Header.Set("X-Tenant", "acme")
		w := httptest.NewRecorder()
		service.ServeHTTP(w, r)
		var problem struct{ Reference string }
		_ = json.Unmarshal(w.Body.Bytes(), &problem) // a reply that is no refusal has none
		ts.Setenv("REFERENCE", problem.Reference)
	}
}

// control stops, continues or kills the script's Redis: redis stop.
func control(ts *testscript.TestScript, neg bool, args []string) {
	server := ts.Value("redis").(*limittest.Redis)
	acts := map[string]func(){"stop": server.Stop, "continue": server.Continue, "kill": server.Kill}
	if neg || len(args) != 1 || acts[args[0]] == nil {
		ts.Fatalf("usage: redis stop|continue|kill")
	}
	acts[args[0]]()
}
