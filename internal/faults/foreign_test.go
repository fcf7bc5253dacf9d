package faults_test

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/internal/redistest"
)

const (
	foreignFault = "WRONGTYPE: somebody has written to a key of ours"
	poolFault    = "a pool of one connection, under 64 callers"
)

// A foreign value in a counter's key spoils only that counter. The value is left as it is.
func TestForeignValue(t *testing.T) {
	var told journal
	server, limit, ctx := redistest.Start(t), core.PerDay(1000), context.Background()
	s := limited(t, server, core.Options{Timeout: patience, Logger: slog.New(slog.NewJSONHandler(&told, nil))})
	ways := s.ways(limit)
	for _, ask := range ways {
		if d, err := ask(ctx, "spoiled"); !decided(d, err) {
			t.Fatalf("%+v, %v", d, err)
		}
	}
	spoil(t, s.client)
	together(64, func(i int) {
		for way, ask := range ways {
			d, err := ask(ctx, "spoiled")
			wantPolicy(t, way, d, err)
			if d, err := ask(ctx, fmt.Sprint("other", i)); !decided(d, err) {
				t.Errorf("%s: %+v, %v; want other callers decided", way, d, err)
			}
		}
	})
	if got := s.breaker(); got != "closed" {
		t.Errorf("the breaker is %s, though the server answers", got)
	}
	told.wantOnce(t, core.StoreForeignValue, "")
	if said := told.complaints(t, core.StoreForeignValue); len(said) == 0 || !strings.Contains(said[0].Error, "accesslimit:{spoiled}:") {
		t.Errorf("%+v, want the key named", said)
	}
	s.limiter.Close()
	told.wantAll(t, core.StoreForeignValue, 64*len(ways))
	report(t, foreignFault, "%d calls of that key by policy, all others decided", 64*len(ways))
}

// spoil replaces every counter by a set.
func spoil(t *testing.T, client *redis.Client) {
	t.Helper()
	ctx := context.Background()
	keys, err := client.Keys(ctx, "*{spoiled}*").Result()
	if err != nil || len(keys) == 0 {
		t.Fatal(keys, err)
	}
	for _, key := range keys {
		if err := cmp.Or(client.Del(ctx, key).Err(), client.SAdd(ctx, key, "not a counter").Err()); err != nil {
			t.Fatal(err)
		}
	}
}

// One connection is enough for many callers, because their calls are sent together.
func TestPoolOfOneConnection(t *testing.T) {
	server := redistest.Start(t)
	s := limited(t, server, core.Options{Timeout: patience}, func(o *redis.Options) { o.PoolSize = 1 })
	ask, limit := s.direct("direct", core.PerDay(1000)), 100
	together(64, func(i int) {
		for n := range limit {
			subject := "hot"
			if i%2 == 0 {
				subject = fmt.Sprint(i, ".", n)
			}
			if d, err := ask(context.Background(), subject); !decided(d, err) && d.Reason != core.LimitExceeded {
				t.Errorf("%+v, %v; want it decided", d, err)
			}
		}
	})
	if used := charged(t, server, "direct", core.PerDay(1000), []string{"hot"})[0]; used != 1000 {
		t.Errorf("%d of 1,000 are charged by 3,200 calls", used)
	}
	report(t, poolFault, "%d calls, all decided", 64*limit)
}
