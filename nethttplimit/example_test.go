package nethttplimit_test

import (
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/nethttplimit"
)

// One guard limits the calls, and shows callers what is left.
func ExampleOwnLimits() {
	limiter, err := core.New(core.Options{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		panic(err)
	}
	defer limiter.Close()
	guard := limiter.MustGuard(core.Rule{Name: "api", Limit: core.PerHour(100).Fixed(), Paths: []string{"/api/**"}})
	mux := http.NewServeMux()
	mux.HandleFunc("GET /api/list", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "a list") })
	mux.Handle("GET /rate_limit", nethttplimit.OwnLimits(guard))
	service := nethttplimit.With(guard)(mux)

	for _, path := range []string{"/api/list", "/rate_limit", "/rate_limit"} {
		w := httptest.NewRecorder()
		service.ServeHTTP(w, httptest.NewRequest("GET", path, nil))
		shown, _, _ := strings.Cut(w.Body.String(), `"reset"`)
		fmt.Println(w.Code, shown)
	}
	// Output:
	// 200 a list
	// 200 {"limits":[{"name":"api","limit":100,"remaining":99,
	// 200 {"limits":[{"name":"api","limit":100,"remaining":99,
}
