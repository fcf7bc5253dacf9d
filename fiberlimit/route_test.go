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
