package echolimit_test

import (
	"net/http/httptest"
	"testing"

	"github.com/labstack/echo/v4"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/echolimit"
	"github.com/accesslimit/accesslimit/internal/followtest"
)

// With and Allow follow a set of rules.
func TestRuleSet(t *testing.T) {
	followtest.Run(t, func(guard *core.Guard, check *core.Check) func() bool {
		router := echo.New()
		router.GET("/", func(c echo.Context) error {
			if echolimit.Allow(c, check, "account:7") {
				return c.NoContent(204)
			}
			return nil
		}, echolimit.With(guard))
		return func() bool {
			w := httptest.NewRecorder()
			router.ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
			return w.Code == 204
		}
	})
}
