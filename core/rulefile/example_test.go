package rulefile_test

import (
	"fmt"
	"log"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"

	"github.com/accesslimit/accesslimit/core"
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
