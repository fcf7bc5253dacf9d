package rivals

import (
	"net"
	"net/http"
	"time"

	"github.com/go-chi/httprate"
)

// github.com/go-chi/httprate: two windows, of which the earlier one is weighted.

// httprateCounter does what the middleware does for each call: reads both windows and counts.
var httprateCounter = InProcess{"httprate", func(l Limit, _ int) (func(string) bool, func()) {
	counter := httprate.NewLocalLimitCounter(l.Window)
	counter.Config(l.Max, l.Window)
	return func(subject string) bool {
		now := time.Now().UTC()
		window := now.Truncate(l.Window)
		current, previous, err := counter.Get(subject, window, window.Add(-l.Window))
		weight := float64(l.Window-now.Sub(window)) / float64(l.Window)
		if err != nil || float64(previous)*weight+float64(current) >= float64(l.Max) {
			return false
		}
		return counter.IncrementBy(subject, window, 1) == nil
	}, func() {}
}}

var (
	httprateNetHTTP      = limited("net/http", "httprate", OursXRateLimit, httprateCaller())
	httprateQuietNetHTTP = limited("net/http", "httprate, no headers", OursNoHeaders,
		httprateCaller(httprate.WithResponseHeaders(httprate.ResponseHeaders{})))
)

func httprateCaller(options ...httprate.Option) func() newCaller {
	return func() newCaller {
		limit := httprate.LimitBy(middlewareMax, middlewareWindow, httprateKey, options...)
		return httpCaller(limit(http.HandlerFunc(nothing)))
	}
}

// httprateKey returns the caller's address without the port. The other middlewares count by it too.
func httprateKey(r *http.Request) (string, error) {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	return httprate.CanonicalizeIP(host), err
}
