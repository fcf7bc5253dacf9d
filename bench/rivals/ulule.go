package rivals

import (
	"context"
	"net/http"

	"github.com/ulule/limiter/v3"
	fastulule "github.com/ulule/limiter/v3/drivers/middleware/fasthttp"
	ginulule "github.com/ulule/limiter/v3/drivers/middleware/gin"
	"github.com/ulule/limiter/v3/drivers/middleware/stdlib"
	"github.com/ulule/limiter/v3/drivers/store/memory"
	"github.com/ulule/limiter/v3/drivers/store/redis"
	"github.com/valyala/fasthttp"
)

// github.com/ulule/limiter/v3: fixed windows.

var ulule = Redis{Name: Ulule, Costs: true, Open: func(p Place, l Limit) (Opened, error) {
	client := p.client()
	store, err := redis.NewStore(client)
	if err != nil {
		return Opened{}, err
	}
	limiter := limiter.New(store, limiter.Rate{Limit: int64(l.Max), Period: l.Window})
	allow := func(ctx context.Context, subject string) (allowed bool, err error) {
		state, err := limiter.Get(ctx, subject)
		return err == nil && !state.Reached, err
	}
	return Opened{Allow: allow, Close: func() { _ = client.Close() }}, nil
}}

var ululeMemory = InProcess{Ulule, func(l Limit, _ int) (func(string) bool, func()) {
	limiter := limiter.New(memory.NewStore(), limiter.Rate{Limit: int64(l.Max), Period: l.Window})
	return func(subject string) bool {
		state, err := limiter.Get(background, subject)
		return err == nil && !state.Reached
	}, func() {}
}}

func ululeLimiter() *limiter.Limiter {
	return limiter.New(memory.NewStore(), limiter.Rate{Limit: middlewareMax, Period: middlewareWindow})
}

var ululeNetHTTP = limited("net/http", Ulule, OursXRateLimit, func() newCaller {
	return httpCaller(stdlib.NewMiddleware(ululeLimiter()).Handler(http.HandlerFunc(nothing)))
})

var ululeGin = limited("gin", Ulule, OursXRateLimit, func() newCaller {
	return ginWith(ginulule.NewMiddleware(ululeLimiter()))
})

var ululeFastHTTP = limited("fasthttp", Ulule, "", func() newCaller {
	return fastCaller(fastulule.NewMiddleware(ululeLimiter()).Handle(func(*fasthttp.RequestCtx) {}))
})
