package main

import (
	"errors"
	"os"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/urfave/cli/v3"
)

// redisFlags say which Redis, and which keys there.
func redisFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "redis", OnlyOnce: true, Usage: "a `FILE` with the URL of Redis, in place of $REDIS_URL"},
		&cli.StringFlag{Name: "prefix", OnlyOnce: true, Value: "accesslimit", Usage: "the `PREFIX` of the keys (Options.Prefix)", Sources: cli.EnvVars("ACCESSLIMIT_PREFIX")},
		&cli.DurationFlag{Name: "timeout", OnlyOnce: true, Value: 5 * time.Second, Usage: "how long to wait for Redis: a `TIME` up to 1m", Sources: cli.EnvVars("ACCESSLIMIT_TIMEOUT")},
	}
}

// connect returns a client of the Redis that the flags name.
func connect(c *cli.Command) (redis.UniversalClient, error) {
	text := os.Getenv("REDIS_URL")
	switch file := c.String("redis"); {
	case strings.Contains(file, "://"):
		return nil, usage(c, "-redis takes a file: everybody on this machine can read the password in an argument. Write the URL into a file, or into $REDIS_URL")
	case file != "":
		data, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		text = string(data)
	case text == "":
		return nil, usage(c, "which Redis? Set $REDIS_URL, such as redis://localhost:6379, or name a file with the URL: -redis FILE")
	}
	timeout := c.Duration("timeout")
	if timeout < time.Millisecond || timeout > time.Minute {
		return nil, usage(c, "-timeout %v: write a time from 1ms to 1m", timeout)
	}
	client, err := newClient(text, timeout)
	if err != nil {
		return nil, usage(c, "%v", err)
	}
	return client, nil
}

// adviceOn returns what to do about an error of Redis.
func adviceOn(err error) string {
	for ; err != nil; err = errors.Unwrap(err) {
		if _, moved := redis.IsMovedError(err); moved {
			return "This server is part of a cluster: let the URL begin with redis-cluster."
		}
	}
	return "Type \"accesslimit doctor\" to see what is wrong with Redis."
}
