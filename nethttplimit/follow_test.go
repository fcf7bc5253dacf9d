package nethttplimit_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/internal/followtest"
	"github.com/accesslimit/accesslimit/nethttplimit"
)

// With and Allow follow a set of rules.
func TestRuleSet(t *testing.T) {
	followtest.Run(t, func(guard *core.Guard, check *core.Check) func() bool {
		service := nethttplimit.With(guard)(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if nethttplimit.Allow(w, r, check, "account:7") {
				w.WriteHeader(204)
			}
		}))
		return func() bool {
			w := httptest.NewRecorder()
			service.ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
			return w.Code == 204
		}
	})
}
