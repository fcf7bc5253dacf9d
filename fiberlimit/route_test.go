package fiberlimit_test

import (
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/gofiber/fiber/v2"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/fiberlimit"
	"github.com/accesslimit/accesslimit/internal/limitertest"
)

// TestUseHasNoRoute checks that the prefix that Use was given is not taken for a route. A rule in
// Use and the same rule on the route "/" have two counters, and all calls of Use have one.
func TestUseHasNoRoute(t *testing.T) {
	limiter := limitertest.New(t, core.Options{})
	text := func(c *fiber.Ctx) error { return c.SendString("ok") }
	pass := func(c *fiber.Ctx) error { return c.Next() }
	app := fiber.New()
	app.Use(pass, fiberlimit.New(limiter, core.Rule{Seconds: 600, MaxCount: 3}), pass)
	app.Get("/", fiberlimit.New(limiter, core.Rule{Seconds: 601, MaxCount: 9}), text)
	group := app.Group("/group")
	group.Get("/:id", fiberlimit.New(limiter, core.Rule{Seconds: 601, MaxCount: 9}), text)

	for _, call := range []struct {
		path    string
		status  int
		entries []string
	}{
		{"/", 200, []string{`"(no route)";r=2`, `"GET /";r=8`}},
		{"/group/7", 200, []string{`"(no route)";r=1`, `"GET /group/:id";r=8`}},
		{"/unknown", 404, []string{`"(no route)";r=0`}},
		{"/group/8", 429, []string{`"(no route)";r=0`}},
	} {
		response, err := app.Test(httptest.NewRequest("GET", call.path, nil))
		if err != nil {
			t.Fatal(err)
		}
		if response.StatusCode != call.status {
			t.Errorf("GET %s: status %d, want %d", call.path, response.StatusCode, call.status)
		}
		if got := withoutWaits(response.Header["Ratelimit"]); !slices.Equal(got, call.entries) {
			t.Errorf("GET %s: RateLimit %q, want %q", call.path, got, call.entries)
		}
		_ = response.Body.Close()
	}
}

func withoutWaits(entries []string) (without []string) {
	for _, entry := range entries {
		start, _, _ := strings.Cut(entry, ";t=")
		without = append(without, start)
	}
	return without
}

// An app that is mounted at two prefixes, or two apps with the same routes, have routes of their own.
func TestMountedAppsCountByThemselves(t *testing.T) {
	limiter := limitertest.New(t, core.Options{})
	app := fiber.New()
	for _, prefix := range []string{"/a", "/b"} {
		inner := fiber.New()
		inner.Get("/items/:id", fiberlimit.New(limiter, core.Rule{Seconds: 600, MaxCount: 1}), func(c *fiber.Ctx) error { return nil })
		app.Mount(prefix, inner)
	}
	for _, prefix := range []string{"/a", "/b"} {
		for _, want := range []int{200, 429} {
			response, err := app.Test(httptest.NewRequest("GET", prefix+"/items/7", nil))
			if err != nil {
				t.Fatal(err)
			}
			_ = response.Body.Close()
			entry := `"GET ` + prefix + `/items/:id";r=0`
			if got := withoutWaits(response.Header["Ratelimit"]); response.StatusCode != want || !slices.Equal(got, []string{entry}) {
				t.Errorf("%s: status %d and RateLimit %q, want %d and %s", prefix, response.StatusCode, got, want, entry)
			}
		}
	}
}
