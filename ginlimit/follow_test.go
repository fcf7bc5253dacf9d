package ginlimit_test

import (
	"net/http/httptest"
	"testing"

	"github.com/gin-gonic/gin"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/ginlimit"
	"github.com/accesslimit/accesslimit/internal/followtest"
)

// With and Allow follow a set of rules.
func TestRuleSet(t *testing.T) {
	followtest.Run(t, func(guard *core.Guard, check *core.Check) func() bool {
		gin.SetMode(gin.TestMode)
		router := gin.New()
		router.GET("/", ginlimit.With(guard), func(c *gin.Context) {
			if ginlimit.Allow(c, check, "account:7") {
				c.Status(204)
			}
		})
		return func() bool {
			w := httptest.NewRecorder()
			router.ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
			return w.Code == 204
		}
	})
}
