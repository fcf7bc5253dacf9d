package redisrate_test

import (
	"context"
	"fmt"
	"log"
	"log/slog"

	"github.com/redis/go-redis/v9"

	"github.com/accesslimit/accesslimit/core"
	redis_rate "github.com/accesslimit/accesslimit/redisrate"
)

func ExampleNewLimiter() {
	limiter := redis_rate.NewLimiter(redis.NewClient(&redis.Options{Addr: "localhost:6379"}))
	res, err := limiter.Allow(context.Background(), "project:123", redis_rate.PerSecond(10))
	if err != nil {
		log.Print(err)
		return
	}
	fmt.Println("allowed", res.Allowed, "remaining", res.Remaining)
}

// A service that has a core.Limiter anyway shares its timeout, its metrics and its log. Without
// Redis, it counts in the process, which is enough for a test.
func ExampleFrom() {
	limiter, err := core.New(core.Options{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		log.Fatal(err)
	}
	defer limiter.Close()
	res, err := redis_rate.From(limiter).AllowN(context.Background(), "project:123", redis_rate.PerMinute(10), 4)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("allowed", res.Allowed, "remaining", res.Remaining)
	// Output: allowed 4 remaining 6
}
