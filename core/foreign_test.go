package core_test

import (
	"strings"

	"github.com/redis/go-redis/v9"
)

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
