package core_test

import (
	"context"
	"regexp"
	"testing"
	"time"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/internal/redistest"
)

// During a rolling deploy an older or newer version may keep another layout of the same state
// beside this one's: each has keys of its own, and neither reads the other's.
func TestAnotherLayoutLiesBeside(t *testing.T) {
	server := redistest.Start(t)
	client := server.Client(t)
	limiter := newLimiter(t, core.Options{Redis: client, Timeout: patient})
	ctx := context.Background()
	for algorithm := core.SlidingWindow; algorithm < core.Concurrency; algorithm++ {
		limit := core.Limit{Max: 2, Window: time.Hour, Algorithm: algorithm}
		key := core.CounterKey("accesslimit", "user:alice", "reply", limit)
		other := regexp.MustCompile(`:([a-z]+)[0-9]:`).ReplaceAllString(key, ":${1}9:")
		if other == key {
			t.Fatalf("%s names no layout", key)
		}
		if err := client.Set(ctx, other, "a state of another version", time.Hour).Err(); err != nil {
			t.Fatal(err)
		}
		for left := 1; left >= 0; left-- {
			d, err := limiter.MustCounter("reply", limit).Allow(ctx, "user:alice")
			if err != nil || d.Remaining != left {
				t.Errorf("%v: %+v, %v; want %d left", algorithm, d, err, left)
			}
		}
		if state := client.Get(ctx, other).Val(); state != "a state of another version" {
			t.Errorf("%v: the other version finds %q", algorithm, state)
		}
	}
}
