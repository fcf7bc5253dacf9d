package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os/exec"
	"regexp"
	"strconv"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/accesslimit/accesslimit/core"
)

// server is a redis-server of this program's own, and limiters on it.
type server struct {
	process *exec.Cmd
	client  *redis.Client
	limiter *core.Limiter
}

func startServer() (*server, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	address := l.Addr().String()
	l.Close()
	_, port, _ := net.SplitHostPort(address)
	process := exec.Command("redis-server", "--port", port, "--bind", "127.0.0.1", "--save", "", "--appendonly", "no")
	if err := process.Start(); err != nil {
		return nil, err
	}
	s := &server{process: process, client: redis.NewClient(&redis.Options{Addr: address})}
	for range 100 {
		if err = s.client.Ping(context.Background()).Err(); err == nil {
			s.limiter, err = core.New(core.Options{Redis: s.client, Timeout: time.Minute})
			return s, err
		}
		time.Sleep(50 * time.Millisecond)
	}
	s.stop()
	return nil, fmt.Errorf("redis-server does not start: %w", err)
}

func (s *server) stop() {
	_ = s.process.Process.Kill()
	_ = s.process.Wait()
}

// costs are those of one algorithm: bytes of a key, and microseconds of the server for a decision.
type costs struct {
	cold, busy       int64
	allowed, refused float64
}

// subjects are who calls: twenty letters each, as the figures of memory count them with their keys.
const subjects = 500

func subject(i int) string { return fmt.Sprintf("user:alice-in-w-%04d", i) }

// rounds is how often each algorithm is measured.
const rounds = 3

// least is the least of what some rounds found.
func (s *server) least(ctx context.Context, a algorithm) (least costs, err error) {
	for round := range rounds {
		c, err := s.costs(ctx, a)
		if err != nil {
			return c, err
		}
		if round == 0 {
			least = c
		}
		least.allowed, least.refused = min(least.allowed, c.allowed), min(least.refused, c.refused)
	}
	return least, nil
}

func (s *server) costs(ctx context.Context, a algorithm) (c costs, err error) {
	run := func(times int, over time.Duration) {
		if err == nil {
			err = s.callAll(ctx, a, times, over)
		}
	}
	weigh := func() (n int64) {
		if err == nil {
			n, err = s.bytes(ctx)
		}
		return n
	}
	if err = s.client.FlushAll(ctx).Err(); err != nil {
		return c, err
	}
	run(1, 0)
	c.cold = weigh()
	s.timed(ctx, &c.allowed, &err, func() { run(maxCalls-1, a.limit.Window/2) })
	c.busy = weigh()
	s.timed(ctx, &c.refused, &err, func() { run(maxCalls/2, 0) })
	return c, err
}

// callAll has every subject call so often, from some goroutines at once, spread over a time.
func (s *server) callAll(ctx context.Context, a algorithm, times int, over time.Duration) error {
	begin := time.Now()
	return together(func(caller int) error {
		for round := range times {
			time.Sleep(time.Until(begin.Add(over * time.Duration(round) / time.Duration(times))))
			for i := caller; i < subjects; i += callers {
				if err := s.call(ctx, a, subject(i)); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

func (s *server) call(ctx context.Context, a algorithm, subject string) (err error) {
	if a.limit.Algorithm == core.Concurrency {
		_, _, err = s.limiter.Hold(ctx, "api", subject, a.limit)
		return err
	}
	_, err = s.limiter.Allow(ctx, "api", subject, a.limit)
	return err
}

// bytes is what a key takes on average, with its name and all that Redis keeps for it.
func (s *server) bytes(ctx context.Context) (int64, error) {
	keys, err := s.client.Keys(ctx, "*").Result()
	if err != nil || len(keys) != subjects {
		return 0, fmt.Errorf("%d keys for %d subjects: %w", len(keys), subjects, err)
	}
	var sum int64
	for _, key := range keys {
		n, err := s.client.MemoryUsage(ctx, key, 0).Result()
		if err != nil {
			return 0, err
		}
		sum += n
	}
	return sum / subjects, nil
}

var usecPerCall = regexp.MustCompile(`cmdstat_evalsha:.*usec_per_call=([0-9.]+)`)

// timed finds out how long the server took for each EVALSHA of a run.
func (s *server) timed(ctx context.Context, micros *float64, failed *error, run func()) {
	if *failed == nil {
		*failed = s.client.ConfigResetStat(ctx).Err()
	}
	run()
	stats, err := s.client.Info(ctx, "commandstats").Result()
	found := usecPerCall.FindStringSubmatch(stats)
	switch {
	case *failed != nil:
	case err != nil:
		*failed = err
	case found == nil:
		*failed = errors.New("the server ran no script")
	default:
		*micros, *failed = strconv.ParseFloat(found[1], 64)
	}
}

// nothing is what a script costs that does nothing, as the floor.
func (s *server) nothing(ctx context.Context) (least float64, err error) {
	script := redis.NewScript("return 0")
	if err := script.Load(ctx, s.client).Err(); err != nil {
		return 0, err
	}
	for range rounds {
		var micros float64
		s.timed(ctx, &micros, &err, func() {
			failed := together(func(int) error {
				for range 2000 {
					if err := script.EvalSha(ctx, s.client, []string{"key"}).Err(); err != nil {
						return err
					}
				}
				return nil
			})
			err = errors.Join(err, failed)
		})
		if least == 0 || micros < least {
			least = micros
		}
	}
	return least, err
}

// callers is how many goroutines call at once.
const callers = 16

// together has all callers do something.
func together(do func(caller int) error) error {
	failed := make([]error, callers)
	var all sync.WaitGroup
	for caller := range callers {
		all.Go(func() { failed[caller] = do(caller) })
	}
	all.Wait()
	return errors.Join(failed...)
}
