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

// A rule sees the header that a middleware set, also in place of one that was sent before a body in
// chunks.
func TestHeaderOfAMiddleware(t *testing.T) {
	var seen []string
	app := fiber.New()
	app.Post("/", func(c *fiber.Ctx) error {
		c.Request().Header.Set("X-User", "set")
		return c.Next()
	}, fiberlimit.New(limitertest.New(t, core.Options{}), core.Rule{Name: "users", Seconds: 60, Key: func(r core.Request) (string, error) {
		seen = append(seen, r.Header("X-User")...)
		return "anybody", nil
	}}))
	for _, encoding := range [][]string{nil, {"chunked"}} {
		request := httptest.NewRequest("POST", "/", strings.NewReader("body"))
		request.TransferEncoding = encoding
		if encoding != nil {
			request.Header.Set("X-User", "sent")
		}
		if _, err := app.Test(request, -1); err != nil {
			t.Fatal(err)
		}
	}
	if !slices.Equal(seen, []string{"set", "set"}) {
		t.Errorf("the rule was shown %q", seen)
	}
}

// A middleware that deletes a header makes fasthttp move another line. Rules still see the last
// line that was sent last, and what the getter of handlers returns first.
func TestOrderAfterADeletedHeader(t *testing.T) {
	var seen []string
	app := fiber.New()
	app.Get("/", func(c *fiber.Ctx) error {
		c.Request().Header.Del("X-Deleted")
		seen = append(seen, strings.Clone(c.Get("X-Hop")))
		return c.Next()
	}, fiberlimit.New(limitertest.New(t, core.Options{}), core.Rule{Name: "hops", Seconds: 60, Key: func(r core.Request) (string, error) {
		seen = append(seen, r.Header("X-Hop")...)
		return "anybody", nil
	}}))
	request := httptest.NewRequest("GET", "/", nil)
	request.Header["X-Deleted"], request.Header["X-Hop"] = []string{"a"}, []string{"one", "two", "three"}
	if _, err := app.Test(request, -1); err != nil {
		t.Fatal(err)
	}
	if want := []string{"three", "three", "one", "two", "three"}; !slices.Equal(seen, want) {
		t.Errorf("the getter and the rule returned %q, want %q", seen, want)
	}
}
