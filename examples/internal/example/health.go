package example

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/accesslimit/accesslimit/core"
)

// Health answers health checks, which no rule may limit: 200 while the process serves, and whether
// its limits are counted. A process that cannot reach Redis is no reason for a restart: each rule's
// OnStoreError decides meanwhile.
func Health(limiter *core.Limiter) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintln(w, "healthy")
		var failure *core.StoreError
		if err := limiter.Ping(r.Context()); err == nil {
			fmt.Fprintln(w, "limits are counted")
		} else if errors.As(err, &failure) {
			fmt.Fprintf(w, "limits are not counted: %s\n", failure.Class)
		}
	})
}
