package fiberlimit_test

import (
	"net/http/httptest"
	"testing"

	"github.com/gofiber/fiber/v2"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/fiberlimit"
	"github.com/accesslimit/accesslimit/internal/followtest"
)

// With and Allow follow a set of rules.
func TestRuleSet(t *testing.T) {
	followtest.Run(t, func(guard *core.Guard, check *core.Check) func() bool {
		app := fiber.New()
		app.Get("/", fiberlimit.With(guard), func(c *fiber.Ctx) error {
			if fiberlimit.Allow(c, check, "account:7") {
				c.Status(204)
			}
			return nil
		})
		return func() bool {
			reply, err := app.Test(httptest.NewRequest("GET", "/", nil), -1)
			return err == nil && reply.StatusCode == 204
		}
	})
}
