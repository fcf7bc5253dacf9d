// Package extensiontest has what the tests of the modules that extend the library share. Package
// limitertest has more, but needs more than these modules require.
package extensiontest

import (
	"cmp"
	"log/slog"
	"testing"
	"time"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/internal/bounded"
)

// Patient is a Timeout that a healthy Redis never needs, however busy the machine.
const Patient = time.Minute

// NewLimiter returns a limiter that is closed with the test. Unless the options say otherwise, it logs
// nothing, and its Timeout is so long that a busy machine does not look like a failing store.
func NewLimiter(t testing.TB, options core.Options) *core.Limiter {
	t.Helper()
	if options.Logger == nil {
		options.Logger = slog.New(slog.DiscardHandler)
	}
	options.Timeout = cmp.Or(options.Timeout, Patient)
	limiter, err := core.New(options)
	if err != nil {
		t.Fatal(err)
	}
	bounded.Cleanup(t, limiter.Close)
	return limiter
}
