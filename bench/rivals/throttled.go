package rivals

import (
	"context"
	"net/http"
	"time"

	"github.com/throttled/throttled/v2"
	"github.com/throttled/throttled/v2/store/goredisstore.v9"
	"github.com/throttled/throttled/v2/store/memstore"
)

// github.com/throttled/throttled/v2: GCRA, compared and swapped by the client.

var throttledRedis = Redis{Name: "throttled", Open: func(p Place, l Limit) (Opened, error) {
	client := p.client()
	store, err := goredisstore.NewCtx(client, "throttled:")
	if err != nil {
		return Opened{}, err
	}
	limiter, err := throttled.NewGCRARateLimiterCtx(store, throttledQuota(l))
	if err != nil {
		return Opened{}, err
	}
	allow := func(ctx context.Context, subject string) (allowed bool, err error) {
		limited, _, err := limiter.RateLimitCtx(ctx, subject, 1)
		return err == nil && !limited, err
	}
	return Opened{Allow: allow, Close: func() { _ = client.Close() }}, nil
}}

func throttledQuota(l Limit) throttled.RateQuota {
	rate, span := l.rate()
	return throttled.RateQuota{MaxRate: throttled.PerDuration(rate, span), MaxBurst: l.Max - 1}
}

var throttledMemory = InProcess{"throttled", func(l Limit, keys int) (func(string) bool, func()) {
	limiter := throttledInProcess(throttledQuota(l), 2*keys)
	return func(subject string) bool {
		limited, _, err := limiter.RateLimitCtx(background, subject, 1)
		return err == nil && !limited
	}, func() {}
}}

func throttledInProcess(quota throttled.RateQuota, keys int) *throttled.GCRARateLimiterCtx {
	return must(throttled.NewGCRARateLimiterCtx(must(memstore.NewCtx(keys)), quota))
}

var throttledNetHTTP = limited("net/http", "throttled", OursXRateLimit, func() newCaller {
	quota := throttled.RateQuota{MaxRate: throttled.PerDuration(middlewareMax, time.Second), MaxBurst: middlewareMax - 1}
	limiter := throttled.HTTPRateLimiterCtx{
		RateLimiter: throttledInProcess(quota, 1000), VaryBy: &throttled.VaryBy{RemoteAddr: true},
	}
	return httpCaller(limiter.RateLimit(http.HandlerFunc(nothing)))
})
