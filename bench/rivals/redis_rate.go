package rivals

import (
	"context"

	"github.com/go-redis/redis_rate/v10"
)

// redisRate is github.com/go-redis/redis_rate/v10: GCRA, one script.
var redisRate = Redis{Name: RedisRate, Costs: true, Open: func(p Place, l Limit) (Opened, error) {
	client := p.client()
	limiter := redis_rate.NewLimiter(client)
	rate, span := l.rate()
	limit := redis_rate.Limit{Rate: rate, Burst: l.Max, Period: span}
	allow := func(ctx context.Context, subject string) (allowed bool, err error) {
		result, err := limiter.Allow(ctx, subject, limit)
		return err == nil && result.Allowed > 0, err
	}
	return Opened{Allow: allow, Close: func() { _ = client.Close() }}, nil
}}
