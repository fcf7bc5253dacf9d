package migrating

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/go-redis/redis_rate/v10"
	"github.com/redis/go-redis/v9"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/internal/limitertest"
	"github.com/accesslimit/accesslimit/internal/redistest"
	"github.com/accesslimit/accesslimit/redisrate"
)

// Both allow the same number of events for any calls in any order. Remaining is one less in
// redis_rate where its floating-point number is a little too small, and 0 beside its refusals.
func TestSameAsRedisRate(t *testing.T) {
	client := redistest.Start(t).Client(t, func(o *redis.Options) { o.ReadTimeout = limitertest.Patient })
	ours, theirs := redisrate.From(limitertest.New(t, core.Options{Redis: client})), redis_rate.NewLimiter(client)
	for step := range 500 {
		key, n := fmt.Sprint("key", rand.IntN(3)), rand.IntN(13)
		name := fmt.Sprintf("step %d, %s, %d events", step, key, n)
		if n == 12 {
			if err1, err2 := ours.Reset(t.Context(), key), theirs.Reset(t.Context(), key); err1 != nil || err2 != nil {
				t.Fatal(err1, err2)
			}
			continue
		}
		here, there := ours.AllowN, theirs.AllowN
		if rand.IntN(2) == 0 {
			here, there = ours.AllowAtMost, theirs.AllowAtMost
		}
		got, err1 := here(t.Context(), key, perDay, n)
		want, err2 := there(t.Context(), key, redis_rate.Limit(perDay), n)
		if err1 != nil || err2 != nil {
			t.Fatal(err1, err2)
		}
		same := got.Allowed == want.Allowed && (got.RetryAfter == -1) == (want.RetryAfter == -1)
		if less := got.Remaining - want.Remaining; !same || got.RetryAfter == -1 && less != 0 && less != 1 {
			t.Errorf("%s: %+v, want %+v", name, got, want)
		}
		if want.RetryAfter != -1 && !within(want.RetryAfter, got.RetryAfter) && !within(got.RetryAfter, want.RetryAfter) {
			t.Errorf("%s: RetryAfter %v, want %v", name, got.RetryAfter, want.RetryAfter)
		}
	}
}
