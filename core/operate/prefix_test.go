package operate_test

import (
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/operate"
)

// A prefix is unused until the first call, whatever lies under others, on each deployment.
func TestPrefixUnused(t *testing.T) {
	onEveryDeployment(t, func(t *testing.T, options core.Options) {
		limiter := newLimiter(t, options)
		operator := operate.New(limiter)
		want := func(want bool) {
			t.Helper()
			if unused, err := operator.PrefixUnused(background); unused != want || err != nil {
				t.Errorf("unused %v, want %v, %v", unused, want, err)
			}
		}
		if options.Redis == nil {
			want(false)
			return
		}
		if err := options.Redis.Set(background, "other:{key}", "", redis.KeepTTL).Err(); err != nil {
			t.Fatal(err)
		}
		want(true)
		if _, err := limiter.MustCounter("api", core.PerDay(5)).Allow(background, "user:alice"); err != nil {
			t.Fatal(err)
		}
		want(false)
	})
}
