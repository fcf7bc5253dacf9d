package core_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/internal/logtest"
	"github.com/accesslimit/accesslimit/internal/redistest"
)

func TestNewRefusesBadOptions(t *testing.T) {
	long := strings.Repeat("x", 41)
	for _, test := range []struct {
		name    string
		options core.Options
		field   string
		value   string // the start of it
	}{
		{"prefix with a brace", core.Options{Prefix: "a{b"}, "Prefix", "a{b"},
		{"prefix with a closing brace", core.Options{Prefix: "a}"}, "Prefix", "a}"},
		{"prefix with a line break", core.Options{Prefix: "a\n"}, "Prefix", "a\n"},
		{"prefix with a space", core.Options{Prefix: "a b"}, "Prefix", "a b"},
		{"prefix beyond ASCII", core.Options{Prefix: "größe"}, "Prefix", "größe"},
		{"prefix of invalid UTF-8", core.Options{Prefix: "a\xff"}, "Prefix", "a\xff"},
		{"prefix of 41 bytes", core.Options{Prefix: long}, "Prefix", long},
		{"negative timeout", core.Options{Timeout: -1}, "Timeout", "-1ns"},
		{"timeout under a millisecond", core.Options{Timeout: 999 * time.Microsecond}, "Timeout", "999µs"},
		{"timeout over a minute", core.Options{Timeout: time.Minute + 1}, "Timeout", "1m0.000000001s"},
		{"largest timeout", core.Options{Timeout: math.MaxInt64}, "Timeout", "2562047h"},
		{"negative MaxKeys", core.Options{MaxKeys: -1}, "MaxKeys", "-1"},
		{"two forms of RateLimit", core.Options{Headers: core.HeadersDraft10 | core.HeadersDraft7}, "Headers", "3"},
		{"two drafts", core.Options{Headers: core.HeadersDraft10 | core.HeadersDraft11}, "Headers", "33"},
		{"an old and a new draft", core.Options{Headers: core.HeadersDraft11 | core.HeadersDraft7}, "Headers", "34"},
		{"two forms of X-RateLimit-Reset", core.Options{Headers: core.HeadersXRateLimit | core.HeadersXRateLimitDelta}, "Headers", "12"},
		{"no headers and some", core.Options{Headers: core.NoHeaders | core.HeadersDraft10}, "Headers", "17"},
		{"no headers and the new draft", core.Options{Headers: core.NoHeaders | core.HeadersDraft11}, "Headers", "48"},
		{"unknown style", core.Options{Headers: core.HeadersDraft11 << 1}, "Headers", "64"},
		{"all styles", core.Options{Headers: 255}, "Headers", "255"},
		{"typed nil client", core.Options{Redis: (*redis.Client)(nil)}, "Redis", "(*redis.Client)(nil)"},
		{"typed nil cluster", core.Options{Redis: (*redis.ClusterClient)(nil)}, "Redis", "(*redis.ClusterClient)(nil)"},
	} {
		t.Run(test.name, func(t *testing.T) {
			limiter, err := core.New(test.options)
			wantRuleError(t, err, "", "Options."+test.field, test.value)
			if limiter != nil {
				t.Error("a limiter came with the error")
			}
		})
	}
}

func TestNewTakesExtremeOptions(t *testing.T) {
	for name, options := range map[string]core.Options{
		"zero":              {},
		"largest MaxKeys":   {MaxKeys: math.MaxInt},
		"longest prefix":    {Prefix: strings.Repeat("x", 40)},
		"every prefix sign": {Prefix: "aZ09-._~:/@"},
		"shortest timeout":  {Timeout: time.Millisecond},
		"longest timeout":   {Timeout: time.Minute},
		"several styles":    {Headers: core.HeadersDraft7 | core.HeadersXRateLimit},
	} {
		t.Run(name, func(t *testing.T) {
			limiter := newLimiter(t, options)
			if d, err := limiter.MustCounter("n", core.PerHour(2)).Allow(context.Background(), "s"); err != nil || d.Remaining != 1 {
				t.Errorf("Allow: %+v, %v", d, err)
			}
		})
	}
}

// A service must start while its Redis is down. Its first rule or handle begins to follow the marks of
// subjects, in the background.
func TestNewConnectsToNothing(t *testing.T) {
	var dials atomic.Int32
	client := redis.NewClient(&redis.Options{Dialer: func(context.Context, string, string) (net.Conn, error) {
		dials.Add(1)
		return nil, errors.New("nobody is there")
	}, DialerRetries: 1})
	defer func() { _ = client.Close() }()
	limiter := newLimiter(t, core.Options{Redis: client, Timeout: patient})
	if n := dials.Load(); n != 0 {
		t.Fatalf("%d connections were tried before any rule", n)
	}
	guard := newGuard(t, limiter, core.Rule{Name: "api", Seconds: 1}, core.Rule{Seconds: 1})
	guard.Check(newView("GET", "/"))
	if dials.Load() == 0 {
		t.Error("no connection was tried for a call: the test shows nothing")
	}
}

func TestNewLogsTheEngineOnce(t *testing.T) {
	for line, options := range map[string]core.Options{
		"no Redis here: counts stay in this process":                              {},
		`which has not been tried yet: Limiter.Ping tries it" prefix=accesslimit`: deadRedis(t),
	} {
		var log logtest.Log
		options.Logger = log.Logger()
		newLimiter(t, options)
		if log.Count() != 1 || log.Count(line) != 1 {
			t.Errorf("%s, want one line: %s", log.String(), line)
		}
	}
}

// Close logs the lines that would otherwise be logged when their minute is over.
func TestCloseLogsWhatWaits(t *testing.T) {
	var log logtest.Log
	limiter := newLimiter(t, core.Options{Logger: log.Logger()})
	for range 3 {
		checkRule(limiter, newView("GET", "/"), core.Rule{Name: "r", Seconds: 60, Cost: cost(-1)}, "")
	}
	limiter.Close()
	if log.Count("cost is negative") != 2 || log.Count("calls=2") != 1 {
		t.Error(log.String())
	}
}

// commandHook counts the commands that a hook of a client sees.
type commandHook struct{ seen int }

func (h *commandHook) DialHook(next redis.DialHook) redis.DialHook { return next }

func (h *commandHook) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		h.seen++
		return next(ctx, cmd)
	}
}

func (h *commandHook) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		h.seen += len(cmds)
		return next(ctx, cmds)
	}
}

// The hooks of a client see none of the limiter's commands, whether they were added before or after.
func TestHooksSeeNoCommands(t *testing.T) {
	client, before, after := redistest.Start(t).Client(t), new(commandHook), new(commandHook)
	client.AddHook(before)
	limiter := newLimiter(t, core.Options{Redis: client})
	client.AddHook(after)
	for range 3 {
		if d, err := limiter.MustCounter("n", core.PerHour(5)).Allow(background, me); err != nil || d.Source != core.FromRedis {
			t.Fatalf("%+v, %v", d, err)
		}
	}
	if before.seen+after.seen > 0 {
		t.Errorf("hooks saw %d and %d commands", before.seen, after.seen)
	}
	if client.Ping(background); before.seen != 1 || after.seen != 1 {
		t.Error("hooks do not see the commands of the client's owner: the test shows nothing")
	}
}

// One script decides many calls on different keys, and reads them by MGET, unless OneKeyPerScript is
// set or the user may not call MGET. The log says that once.
func TestOneKeyPerScript(t *testing.T) {
	for _, test := range []struct {
		name   string
		option bool
		rule   string // of the user
		joins  bool
		lines  int
	}{
		{"by default", false, "+@all", true, 0},
		{"turned off", true, "+@all", false, 0},
		{"without the right", false, "-mget", false, 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			server := redistest.Start(t)
			client := server.UserWith(t, "~accesslimit:*", "+@all", test.rule)
			var log logtest.Log
			limiter := newLimiter(t, core.Options{Redis: client, Timeout: patient, Logger: log.Logger(), OneKeyPerScript: test.option})
			counter := limiter.MustCounter("name", core.PerHour(1000))
			const line = "different subjects cannot share a script"
			for round := 0; round < 20 || test.joins && server.Calls("mget") < 200 || log.Count(line) < test.lines; round++ {
				var callers sync.WaitGroup
				for i := range 64 {
					callers.Go(func() {
						for n := range 8 {
							if d, err := counter.Allow(background, fmt.Sprint(i, n)); err != nil || !d.Allowed {
								t.Errorf("%v, %v", d, err)
							}
						}
					})
				}
				callers.Wait()
				if round == 500 {
					t.Fatalf("%d calls of MGET, log: %s", server.Calls("mget"), log.String())
				}
			}
			if n := server.Calls("mget"); !test.joins && n > 0 || log.Count(line) != test.lines {
				t.Errorf("%d calls of MGET, %d lines in the log: %s", n, log.Count(line), log.String())
			}
		})
	}
}
