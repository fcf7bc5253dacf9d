package rivals

import (
	"context"

	"github.com/go-redis/redis_rate/v10"
	"github.com/redis/go-redis/v9"

	"github.com/accesslimit/accesslimit/bench/harness"
)

// redisRate is github.com/go-redis/redis_rate/v10: GCRA, one script.
var redisRate = Redis{Name: RedisRate, Costs: true, Open: func(p Place, l Limit) (Opened, error) {
	client := p.client()
	return Opened{Allow: redisRateOn(client, l), Close: func() { _ = client.Close() }}, nil
}}

func redisRateOn(client redis.Cmdable, l Limit) harness.AllowFunc {
	limiter := redis_rate.NewLimiter(client)
	rate, span := l.rate()
	limit := redis_rate.Limit{Rate: rate, Burst: l.Max, Period: span}
	return func(ctx context.Context, subject string) (allowed bool, err error) {
		result, err := limiter.Allow(ctx, subject, limit)
		return err == nil && result.Allowed > 0, err
	}
}
