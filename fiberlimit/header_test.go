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
		if _, err := app.Test(request); err != nil {
			t.Fatal(err)
		}
	}
	if !slices.Equal(seen, []string{"set", "set"}) {
		t.Errorf("the rule was shown %q", seen)
	}
}
