package redisstore_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/redis/go-redis/v9"
)

// Three clients with 32 goroutines each, on one key, are admitted exactly as often as the limit says.
func TestManyProcessesOnOneKeyAdmitMax(t *testing.T) {
	server, _ := startOne(t)
	stores := []store{newStore(t, server.Client(t), patient), newStore(t, server.Client(t), patient), newStore(t, server.Client(t), patient)}
	for name, limit := range limits(t, 1000) {
		t.Run(name, func(t *testing.T) {
			c := counter(name, limit)
			var admitted atomic.Int64
			together(3*32, func(goroutine int) {
				for range 20 {
					switch v := stores[goroutine%3].take(context.Background(), c)[0]; {
					case v.Err != nil || v.Ended != nil:
						t.Errorf("%+v", v)
					case v.RetryAfter == 0:
						admitted.Add(1)
					}
				}
			})
			if admitted.Load() != 1000 || stores[0].left(t, c) != 0 {
				t.Errorf("%d admitted, %d left, want 1000 and 0", admitted.Load(), stores[0].left(t, c))
			}
		})
	}
}

// A server that does not know the script is sent its text, once.
func TestUnknownScriptIsSentAsText(t *testing.T) {
	server, client := startOne(t)
	s, c := newStore(t, client, patient), counter("subject", daily(t, 100))
	for i, want := range []string{"calls=1", "calls=1", "calls=1", "calls=2"} {
		if i == 3 {
			client.ScriptFlush(context.Background())
		}
		s.mustTake(t, c)
		if got := evals(t, server.Client(t)); got != want {
			t.Errorf("after call %d: EVAL %s, want %s", i, got, want)
		}
	}
	if left := s.left(t, c); left != 96 {
		t.Errorf("%d left of 100 after 4 calls", left)
	}
}

// evals is how often the server was sent a script's text.
func evals(t *testing.T, client *redis.Client) string {
	t.Helper()
	stats, err := client.InfoMap(context.Background(), "commandstats").Result()
	if err != nil {
		t.Fatal(err)
	}
	var calls int
	_, _ = fmt.Sscanf(stats["Commandstats"]["cmdstat_eval"], "calls=%d", &calls)
	return fmt.Sprintf("calls=%d", calls)
}

// A server that keeps forgetting its scripts, as one does that restarts or fails over, neither fails a call nor charges
// it twice.
func TestScriptFlushWhileDeciding(t *testing.T) {
	server, client := startOne(t)
	s, c := newStore(t, client, patient), counter("subject", daily(t, 100_000))
	flushing, stop := sync.WaitGroup{}, make(chan struct{})
	flushing.Go(func() {
		for flusher := server.Client(t); ; {
			select {
			case <-stop:
				return
			default:
				flusher.ScriptFlush(context.Background())
			}
		}
	})
	together(16, func(int) {
		for range 100 {
			if v := s.take(context.Background(), c)[0]; !passes(v) {
				t.Errorf("%+v", v)
			}
		}
	})
	close(stop)
	flushing.Wait()
	if left := s.left(t, c); left != 100_000-1600 {
		t.Errorf("%d charged of 1600 calls", 100_000-left)
	}
	if n := evals(t, client); n == "calls=1" {
		t.Error("no script was flushed meanwhile")
	}
}
