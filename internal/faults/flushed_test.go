package faults_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/internal/redistest"
)

const (
	scriptFlushFault = "SCRIPT FLUSH in a loop"
	flushAllFault    = "FLUSHALL in a loop"
)

// A server that keeps losing its scripts still answers every call, and counts each once.
func TestScriptsForgotten(t *testing.T) {
	const most = 50
	made, flushes := forget(t, most, 0, func(ctx context.Context, server *redis.Client) error {
		return server.ScriptFlush(ctx).Err()
	}, func(t *testing.T, name string, admitted, flushes int) {
		if admitted != most {
			t.Errorf("%s: %d admitted, want %d", name, admitted, most)
		}
	})
	report(t, scriptFlushFault, "%d calls during %d flushes, no error, exact", made, flushes)
}

// A server that keeps losing everything still answers every call. After each loss the limits start
// fresh.
func TestEverythingForgotten(t *testing.T) {
	const most = 5
	made, flushes := forget(t, most, 20*time.Millisecond, func(ctx context.Context, server *redis.Client) error {
		return server.FlushAll(ctx).Err()
	}, func(t *testing.T, name string, admitted, flushes int) {
		if admitted > most*(1+flushes) || admitted <= most {
			t.Errorf("%s: %d admitted, want more than %d and at most %d, which is a fresh limit for each of %d flushes",
				name, admitted, most, most*(1+flushes), flushes)
		}
	})
	report(t, flushAllFault, "%d calls during %d flushes, no error, at most the limit for each flush", made, flushes)
}

// forget makes callers use up hot keys by every algorithm, and call with other keys, while flush
// runs at this pace. It checks that no call fails, lets check judge the admissions of each hot key,
// and returns the numbers of calls and flushes.
func forget(t *testing.T, most int, pace time.Duration, flush func(context.Context, *redis.Client) error,
	check func(t *testing.T, name string, admitted, flushes int)) (made, flushes int) {
	server, ctx := redistest.Start(t), context.Background()
	s := limited(t, server, core.Options{Timeout: patience}) // so that a busy machine may be slow
	limits := lasting(most, 24*time.Hour)
	var (
		over     atomic.Bool
		calls    atomic.Int64
		admitted = make(map[string]*atomic.Int64)
		counters = make(map[string]core.Counter)
	)
	for name, limit := range limits {
		admitted[name], counters[name] = new(atomic.Int64), s.limiter.MustCounter(name, limit)
	}
	go func() {
		defer over.Store(true)
		forgetful := server.Client(t)
		// Longer than the second for which a refusal is remembered here.
		for until := time.Now().Add(shortOr(2*time.Second, 30*time.Second)); time.Now().Before(until); time.Sleep(pace) {
			if err := flush(ctx, forgetful); err != nil {
				t.Error(err)
				return
			}
			flushes++
		}
	}()
	together(64, func(i int) {
		for n := 0; !over.Load(); n++ {
			for name, counter := range counters {
				hot, err := counter.Allow(ctx, "hot")
				if err != nil {
					t.Error(err)
					return
				}
				if hot.Allowed {
					admitted[name].Add(1)
				}
				if d, err := counter.Allow(ctx, fmt.Sprint(i, ".", n)); err != nil || !d.Allowed {
					t.Errorf("%+v, %v; want a new caller allowed", d, err)
					return
				}
				calls.Add(2)
			}
		}
	})
	for name := range limits {
		check(t, name, int(admitted[name].Load()), flushes)
	}
	return int(calls.Load()), flushes
}
