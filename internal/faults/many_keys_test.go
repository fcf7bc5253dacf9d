package faults_test

import (
	"context"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/internal/redistest"
)

const manyKeysFault = "10 million distinct keys in Redis"

// Every key is gone after its time, however many there are.
func TestManyKeys(t *testing.T) {
	server, keys := redistest.Start(t), shortOr(20_000, 10_000_000)
	s := limited(t, server, core.Options{Timeout: patience})
	limit := core.Limit{Max: 10, Window: shortOr(time.Second, 90*time.Second)}
	counter := s.limiter.MustCounter("many", limit)
	empty := sizeOf(t, s.client)
	var (
		next  atomic.Int64
		begin = time.Now()
	)
	together(256, func(int) {
		for n := next.Add(1); n <= int64(keys); n = next.Add(1) {
			d, err := counter.Allow(context.Background(), "user:"+strconv.FormatInt(1e14+n, 10))
			if err != nil || !d.Allowed {
				t.Errorf("%+v, %v; want a new caller allowed", d, err)
				return
			}
		}
	})
	took := time.Since(begin)
	full := sizeOf(t, s.client)
	if full.keys == 0 {
		t.Fatal("no key is left to be measured")
	}
	waited := time.Now()
	for full.keys > 0 && sizeOf(t, s.client).keys > 0 {
		if time.Since(waited) > 2*limit.Window+patience { // Redis removes them gradually
			t.Fatalf("%d keys are left after two windows", sizeOf(t, s.client).keys)
		}
		time.Sleep(10 * time.Millisecond)
	}
	gone := time.Since(waited)
	report(t, manyKeysFault, "%.0f calls a second; %d B for a key of 20 characters, %.0f MB for the %d that lived at once; "+
		"all gone %.1f windows after the last", float64(keys)/took.Seconds(),
		(full.memory-empty.memory)/full.keys, float64(full.memory)/1e6, full.keys, gone.Seconds()/limit.Window.Seconds())
}

// size is the number of keys in a server, and their memory.
type size struct{ keys, memory int64 }

func sizeOf(t *testing.T, client *redis.Client) size {
	t.Helper()
	keys, err := client.DBSize(context.Background()).Result()
	if err != nil {
		t.Fatal(err)
	}
	keys -= client.Exists(context.Background(), "accesslimit:{%mark0}:mk1").Val() // it stays
	info, err := client.InfoMap(context.Background(), "memory").Result()
	if err != nil {
		t.Fatal(err)
	}
	memory, err := strconv.ParseInt(info["Memory"]["used_memory"], 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return size{keys, memory}
}
