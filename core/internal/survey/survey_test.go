package survey_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
	"github.com/accesslimit/accesslimit/core/internal/limiter"
	"github.com/accesslimit/accesslimit/core/internal/redisstore"
	"github.com/accesslimit/accesslimit/core/internal/survey"
)

// askedStore counts how often it was asked in time.
type askedStore struct {
	limiter.Store
	asked int
}

func (s *askedStore) Do(ctx context.Context, _ *algorithm.Op) {
	if ctx.Err() == nil {
		s.asked++
	}
}

// Reports wait for their turns among all that operators read, so that they do not slow down calls, and
// end them.
func TestReportsTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1"})
		defer client.Close()
		turns, store := redisstore.New(client, time.Second), new(askedStore)
		defer turns.Close()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		report := survey.New(&limiter.Parts{Redis: turns, Store: store})
		report.Begin()
		report.About("key", survey.Any, 1)

		const many = 100 // more than there are turns
		release := make(chan struct{})
		for range many {
			go func() {
				defer turns.Turn(ctx)()
				<-release
			}()
		}
		synctest.Wait()
		go report.Ask(ctx)
		if synctest.Wait(); store.asked > 0 {
			t.Error("the store is asked although all turns are taken")
		}
		close(release)
		synctest.Wait()
		for range many {
			report.Ask(ctx) // in vain, if the turns before have not ended
		}
		if store.asked != many+1 {
			t.Errorf("the store was asked %d times, want %d", store.asked, many+1)
		}
	})
}
