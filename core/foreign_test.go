package core_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/operate"
	"github.com/accesslimit/accesslimit/internal/logtest"
	"github.com/accesslimit/accesslimit/internal/redistest"
)

const banKey = "accesslimit:{s}:n:bn1:0"

// foreign are values that somebody else wrote under a key of ours.
var foreign = map[string]func(client *redis.Client, key string) error{
	"a short string":  func(c *redis.Client, key string) error { return c.Set(background, key, "hello", 0).Err() },
	"an empty string": func(c *redis.Client, key string) error { return c.Set(background, key, "", 0).Err() },
	"a number":        func(c *redis.Client, key string) error { return c.Set(background, key, 12345, 0).Err() },
	"a long string": func(c *redis.Client, key string) error {
		return c.Set(background, key, strings.Repeat("somebody's text ", 20), 0).Err()
	},
	"a hash": func(c *redis.Client, key string) error { return c.HSet(background, key, "field", "value").Err() },
	"a list": func(c *redis.Client, key string) error { return c.RPush(background, key, "a", "b").Err() },
	"a list of texts": func(c *redis.Client, key string) error {
		return c.RPush(background, key, strings.Repeat("text ", 9)).Err()
	},
	"a sorted set": func(c *redis.Client, key string) error {
		return c.ZAdd(background, key, redis.Z{Score: 7, Member: "a"}).Err()
	},
}

// eachForeign runs a test for each foreign value under a key, and checks that the value is left
// unchanged.
func eachForeign(t *testing.T, key string, test func(t *testing.T, limiter *core.Limiter, log *logtest.Log)) {
	t.Helper()
	client := redistest.Start(t).Client(t)
	for name, write := range foreign {
		t.Run(name, func(t *testing.T) {
			client.Del(background, key)
			if err := write(client, key); err != nil {
				t.Fatal(err)
			}
			before := client.Dump(background, key).Val()
			var log logtest.Log
			test(t, newLimiter(t, core.Options{Redis: client, Timeout: patient, Logger: log.Logger()}), &log)
			if after := client.Dump(background, key).Val(); after != before || client.TTL(background, key).Val() != -1 {
				t.Errorf("somebody else's value was changed: %q, was %q", after, before)
			}
		})
	}
}

// For rules, a foreign value is a failure of the store: the policy decides, and the log says what
// is wrong.
func TestForeignValuesOfRules(t *testing.T) {
	for _, policy := range []core.StorePolicy{core.FailOpen, core.FailClosed} {
		t.Run(policy.String(), func(t *testing.T) {
			eachForeign(t, core.CounterKey("accesslimit", "s", "n", core.PerDay(5)), func(t *testing.T, limiter *core.Limiter, log *logtest.Log) {
				rule := core.Rule{Name: "n", Seconds: 3600, Also: []core.Limit{core.PerDay(5)}, Key: key("s"), OnStoreError: policy}
				want, reason := 200, core.StoreFailOpen
				if policy == core.FailClosed {
					want, reason = 503, core.StoreFailClosed
				}
				answer := wantStatus(t, newGuard(t, limiter, rule), newView("GET", "/"), want)
				if answer.Refusal != nil && answer.Refusal.Decision.Reason != reason {
					t.Errorf("%+v", answer.Refusal.Decision)
				}
				wantLeft(t, limiter, "n", "s", core.PerHour(5), 5)
				if log.Count("level=ERROR", "rule=n", "class=foreign_value", "choose a Prefix") != 1 {
					t.Errorf("the log does not say what to do: %s", log.String())
				}
			})
		})
	}
}

// Reset and Unban promise to forget, so they remove the value.
func TestForeignValuesAreForgottenOnDemand(t *testing.T) {
	client := redistest.Start(t).Client(t)
	limiter := newLimiter(t, core.Options{Redis: client, Timeout: patient})
	client.Set(background, core.CounterKey("accesslimit", "s", "n", core.PerHour(1)), "hello", 0)
	client.Set(background, banKey, "hello", 0)
	if err := errors.Join(errorOf(resetOf(limiter, background, "n", "s", core.PerHour(1))), errorOf(operate.New(limiter).Unban(background, "n", "s"))); err != nil {
		t.Error(err)
	}
	if keys := counterKeys(client); len(keys) > 0 {
		t.Errorf("still there: %q", keys)
	}
}
