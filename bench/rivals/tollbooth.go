package rivals

import (
	"net/http"
	"time"

	"github.com/didip/tollbooth/v8"
	"github.com/didip/tollbooth/v8/limiter"
)

// github.com/didip/tollbooth/v8: x/time/rate in a cache whose entries expire.

func tollboothLimiter(perSecond float64, burst int) *limiter.Limiter {
	l := tollbooth.NewLimiter(perSecond, &limiter.ExpirableOptions{DefaultExpirationTTL: time.Hour})
	return l.SetBurst(burst).SetIPLookup(limiter.IPLookup{Name: "RemoteAddr"})
}

var tollboothKeys = InProcess{"tollbooth", func(l Limit, _ int) (func(string) bool, func()) {
	limiter := tollboothLimiter(l.perSecond(), l.Max)
	return func(subject string) bool { return !limiter.LimitReached(subject) }, func() {}
}}

// tollboothNetHTTP sends six headers.
var tollboothNetHTTP = limited("net/http", "tollbooth", OursXRateLimit, func() newCaller {
	return httpCaller(tollbooth.HTTPMiddleware(tollboothLimiter(middlewareMax, middlewareMax))(http.HandlerFunc(nothing)))
})
