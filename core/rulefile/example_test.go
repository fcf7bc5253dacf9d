package rulefile_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"

	"github.com/redis/go-redis/v9"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/operate"
	"github.com/accesslimit/accesslimit/core/rulefile"
	"github.com/accesslimit/accesslimit/nethttplimit"
)

// A service takes its limits from a file. The file names a function that the service registers.
func ExampleLoad() {
	file := newFile(`
version: 1
rules:
  - name: api
    limit: 1/h
    plan: plan_of
    plans: {pro: 1000/h, internal: unlimited}
    skip: {addresses: [10.0.0.0/8], paths: [/health]}
`)
	defer os.RemoveAll(filepath.Dir(file))
	limiter, err := core.New(core.Options{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		log.Fatal(err)
	}
	defer limiter.Close()
	set, err := rulefile.Load(limiter, rulefile.Functions{
		Plans: map[string]func(core.Request) (string, error){
			"plan_of": func(r core.Request) (string, error) { return r.Query("plan"), nil },
		},
	}, file)
	if err != nil {
		log.Fatal(err)
	}
	service := nethttplimit.With(set.MustGuard("api"))(http.NotFoundHandler())
	for _, target := range []string{"/", "/", "/?plan=pro", "/health"} {
		w := httptest.NewRecorder()
		service.ServeHTTP(w, httptest.NewRequest("GET", target, nil))
		fmt.Println(target, w.Header().Get("RateLimit-Policy"), w.Code)
	}
	// Output:
	// / "api";q=1;w=3600 404
	// / "api";q=1;w=3600 429
	// /?plan=pro "api";q=1000;w=3600 404
	// /health  404
}

// All errors are reported at once, each with its place.
func ExampleLoad_errors() {
	file := newFile("version: 1\nrules:\n  - name: api\n    limits: 100/s\n    seconds: 60\n    key: usr\n")
	defer os.RemoveAll(filepath.Dir(file))
	limiter, _ := core.New(core.Options{Logger: slog.New(slog.DiscardHandler)})
	defer limiter.Close()
	_, err := rulefile.Load(limiter, rulefile.Functions{}, file)
	for _, one := range err.(interface{ Unwrap() []error }).Unwrap() {
		wrong := one.(*rulefile.Error)
		fmt.Printf("%d:%d rule %q\n", wrong.Place.Line, wrong.Place.Column, wrong.Rule)
	}
	// Output:
	// 4:5 rule "api"
	// 6:10 rule "api"
}

// A service follows the document of its fleet. While Redis is down, it starts with a file.
func ExampleFollow() {
	rdb := redis.NewClient(&redis.Options{Addr: "localhost:6379", DialerRetries: 1})
	limiter, err := core.New(core.Options{Redis: rdb})
	if err != nil {
		log.Fatal(err)
	}
	document, err := rulefile.NewDocument(rdb, "")
	if err != nil {
		log.Fatal(err)
	}
	set, err := rulefile.Follow(limiter, rulefile.Functions{}, document, rulefile.Files("limits.yaml"))
	if err != nil {
		log.Fatal(err)
	}
	defer set.Close()
	http.Handle("/", nethttplimit.With(set.MustGuard("api"))(http.NotFoundHandler()))
}

// A job in CI publishes a reviewed file. If somebody else has published in the meantime, it fails,
// and says who.
func ExampleDocument_Write() {
	document, err := rulefile.NewDocument(redis.NewClient(&redis.Options{Addr: "localhost:6379"}), "")
	if err != nil {
		log.Fatal(err)
	}
	text, err := os.ReadFile("limits.yaml")
	if err != nil {
		log.Fatal(err)
	}
	now, err := document.Read(context.Background())
	if err != nil {
		log.Fatal(err)
	}
	ctx := operate.WithActor(context.Background(), "ci", "commit "+os.Getenv("COMMIT"))
	next, err := document.Write(ctx, string(text), now)
	var conflict *rulefile.ConflictError
	if errors.As(err, &conflict) {
		log.Fatalf("%s has published %v", conflict.Found.Author, conflict.Found)
	}
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("published", next)
}

// Before a changed file is taken up, Diff says what becomes of the counters.
func ExampleSet_Diff() {
	file := newFile(`
version: 1
rules:
  - {name: api, limit: 100/s, also: [1000/day@UTC]}
  - {name: export, limit: 3 at once}
`)
	defer os.RemoveAll(filepath.Dir(file))
	limiter, _ := core.New(core.Options{Logger: slog.New(slog.DiscardHandler)})
	defer limiter.Close()
	set, err := rulefile.Load(limiter, rulefile.Functions{}, file)
	if err != nil {
		log.Fatal(err)
	}

	_ = os.WriteFile(file, []byte(`
version: 1
rules:
  - {name: api, limit: 200/s, also: [1000/day@Europe/Berlin]}
  - {name: export, limit: 3 at once lost after 5m}
  - {name: search, limit: 10/s}
`), 0o600)
	next, err := rulefile.Load(limiter, rulefile.Functions{}, file)
	if err != nil {
		log.Fatal(err)
	}
	for _, change := range set.Diff(next) {
		fmt.Println(change)
	}
	fmt.Println(set.Reload(), set.Version() == next.Version())
	// Output:
	// rule "api": limit 100/s becomes 200/s: counters keep their use
	// rule "api": also 1000/day@Europe/Berlin is new: counters start empty
	// rule "api": also 1000/day@UTC is gone
	// rule "export": limit 3 at once becomes 3 at once lost after 5m: counters start empty, because the window is another one; calls in flight are not counted
	// rule "search" is new, with 10/s: counters start empty
	// <nil> true
}

// newFile writes a file of rules. It is here only so that the examples can run.
func newFile(text string) (path string) {
	dir, err := os.MkdirTemp("", "rulefile")
	if err != nil {
		log.Fatal(err)
	}
	path = filepath.Join(dir, "limits.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		log.Fatal(err)
	}
	return path
}
