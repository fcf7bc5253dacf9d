package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/accesslimit/accesslimit/core"
)

// server is a redis-server of this program's own.
type server struct {
	process *exec.Cmd
	client  *redis.Client
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
			return s, nil
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

// costs holds the costs of one algorithm: the bytes of a key, and the server's microseconds for a
// decision.
type costs struct {
	cold, busy       int64
	allowed, refused float64
}

// subjects is the number of callers. Each name has twenty letters, because the figures for memory
// include the names of keys.
const subjects = 500

func subject(i int) string { return fmt.Sprintf("user:alice-in-w-%04d", i) }

// rounds is the number of times that each algorithm is measured.
const rounds = 3

// least returns the least costs that any round measured.
func (s *server) least(ctx context.Context, r row) (least costs, err error) {
	for round := range rounds {
		c, err := s.costs(ctx, r)
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

func (s *server) costs(ctx context.Context, r row) (c costs, err error) {
	if err := s.client.FlushAll(ctx).Err(); err != nil {
		return c, err
	}
	limiter, err := s.newLimiter()
	if err != nil {
		return c, err
	}
	defer limiter.Close()
	call := callOf(limiter, r)
	if err := callAll(ctx, call, 1, true); err != nil {
		return c, err
	}
	if c.cold, err = s.bytes(ctx); err != nil {
		return c, err
	}
	c.allowed, err = s.timed(ctx, func() error { return callAll(ctx, call, maxCalls-1, true) })
	if err != nil {
		return c, err
	}
	if c.busy, err = s.bytes(ctx); err != nil {
		return c, err
	}
	c.refused, err = s.timed(ctx, func() error { return s.refuseAll(ctx, r) })
	return c, err
}

// newLimiter returns a limiter whose scripts have one key each, so that the time of a script is the
// time of a decision.
func (s *server) newLimiter() (*core.Limiter, error) {
	return core.New(core.Options{
		Redis: s.client, OneKeyPerScript: true, Timeout: time.Minute, Logger: discard,
	})
}

var discard = slog.New(slog.DiscardHandler)

// refusals is the number of times that every subject is refused.
const refusals = 20

// refuseAll has every subject refused, each time by a new limiter: one that had refused it before
// would remember that, and not ask the server.
func (s *server) refuseAll(ctx context.Context, r row) error {
	for range refusals {
		limiter, err := s.newLimiter()
		if err != nil {
			return err
		}
		err = callAll(ctx, callOf(limiter, r), 1, false)
		limiter.Close()
		if err != nil {
			return err
		}
	}
	return nil
}

// callFunc makes one call of a subject.
type callFunc func(ctx context.Context, subject string) (core.Decision, error)

// callOf returns the function that calls the limiter under the limit of a row. It never releases a
// slot.
func callOf(limiter *core.Limiter, r row) callFunc {
	if r.limit.Algorithm != core.Concurrency {
		return limiter.MustCounter("api", r.limit).Allow
	}
	slots := limiter.MustSlots("api", r.limit.Max).LostAfter(r.limit.Window)
	return func(ctx context.Context, subject string) (core.Decision, error) {
		_, d, err := slots.Hold(ctx, subject)
		return d, err
	}
}

// callAll makes this many calls of every subject, from several goroutines at once. The calls of
// each subject are spread over half a window.
func callAll(ctx context.Context, call callFunc, times int, allowed bool) error {
	begin := time.Now()
	return together(func(caller int) error {
		for round := range times {
			time.Sleep(time.Until(begin.Add(window / 2 * time.Duration(round) / time.Duration(times))))
			for i := caller; i < subjects; i += callers {
				if err := wantDecided(ctx, call, subject(i), allowed); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// wantDecided makes one call. It returns an error if the server was not asked or gave the wrong
// answer, because the run would then measure something else.
func wantDecided(ctx context.Context, call callFunc, subject string, allowed bool) error {
	d, err := call(ctx, subject)
	switch {
	case err != nil:
		return err
	case d.Source != core.FromRedis:
		return fmt.Errorf("%s was answered by %s", subject, d.Source)
	case d.Allowed != allowed:
		return fmt.Errorf("%s: allowed %v, want %v", subject, d.Allowed, allowed)
	}
	return nil
}

// bytes returns the average memory of a key, with its name and everything that Redis keeps for it.
func (s *server) bytes(ctx context.Context) (int64, error) {
	keys, err := s.client.Keys(ctx, "*").Result()
	if err != nil {
		return 0, err
	}
	if len(keys) != subjects {
		return 0, fmt.Errorf("%d keys for %d subjects", len(keys), subjects)
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

// timed returns how many microseconds the server took for each EVALSHA of a run.
func (s *server) timed(ctx context.Context, run func() error) (micros float64, err error) {
	if err := s.client.ConfigResetStat(ctx).Err(); err != nil {
		return 0, err
	}
	if err := run(); err != nil {
		return 0, err
	}
	stats, err := s.client.Info(ctx, "commandstats").Result()
	if err != nil {
		return 0, err
	}
	found := usecPerCall.FindStringSubmatch(stats)
	if found == nil {
		return 0, errors.New("the server ran no script")
	}
	return strconv.ParseFloat(found[1], 64)
}

// nothing returns the cost of a script that does nothing, which is the floor.
func (s *server) nothing(ctx context.Context) (least float64, err error) {
	script := redis.NewScript("return 0")
	if err := script.Load(ctx, s.client).Err(); err != nil {
		return 0, err
	}
	ask := func(int) error {
		for range 2000 {
			if err := script.EvalSha(ctx, s.client, []string{"key"}).Err(); err != nil {
				return err
			}
		}
		return nil
	}
	for round := range rounds {
		micros, err := s.timed(ctx, func() error { return together(ask) })
		if err != nil {
			return 0, err
		}
		if round == 0 || micros < least {
			least = micros
		}
	}
	return least, nil
}

// maxEntries is the largest Max of a SlidingLog.
const maxEntries = 10_000

// refund returns how many microseconds the server takes to give back a call from the middle of a
// log with this many calls and the longest notes, as a median. The middle takes longest, because
// Redis walks there from an end.
func (s *server) refund(ctx context.Context, entries int) (micros float64, err error) {
	limiter, err := s.newLimiter()
	if err != nil {
		return 0, err
	}
	defer limiter.Close()
	log := limiter.MustLog("refund", core.PerHour(entries).Log())
	charged := make([]core.Decision, entries)
	for i := range charged {
		if charged[i], err = log.Allow(ctx, "subject", strings.Repeat("note", 64)); err != nil {
			return 0, err
		}
	}
	const refunds = 51
	var all []float64
	for _, d := range charged[(entries-refunds)/2:][:refunds] {
		micros, err := s.timed(ctx, func() error { return limiter.Refund(ctx, d, 1) })
		if err != nil {
			return 0, err
		}
		all = append(all, micros)
	}
	slices.Sort(all)
	return all[refunds/2], nil
}
