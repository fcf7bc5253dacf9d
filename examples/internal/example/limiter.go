// Package example holds the parts that the examples share, so that each of them shows only how its
// framework is limited: the environment, the users, and a service that starts and ends in order.
//
//	ADDR             where to listen: host:port, or unix:PATH; :8080 unless set
//	REDIS_URL        redis://localhost:6379: all processes on this Redis share their counts; if unset,
//	                 each counts for itself
//	REDIS_TIMEOUT    how long a call waits for Redis: 100ms unless set
//	TRUSTED_PROXIES  addresses, CIDR ranges and "unix", comma-separated, whose X-Forwarded-For is
//	                 believed; none unless set
//	CLIENT_IP_HEADER the header that these proxies write, such as Forwarded or X-Real-IP;
//	                 X-Forwarded-For unless set
//	OPERATOR_TOKEN   the secret of whoever may use the routes under /operator/, and the page at /console/; none
//	                 unless set
//	REFERENCE_KEYS   keys for the references of refusals, as "openssl rand -hex 32" prints one, separated
//	                 by commas; none unless set
//	DRAIN            how long to drain connections before the process ends: 1s unless set
//
// The example quickstart does the same in one file, without the operator.
package example

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/accesslimit/accesslimit/core"
)

// Limiter returns the limiter that the environment describes, for the users alice and bob.
func Limiter() (*core.Limiter, error) {
	return LimiterFor(core.FirstOf(
		core.BearerToken(known(map[string]string{"alice-token": "alice", "bob-token": "bob"})),
		core.Cookie("session", known(map[string]string{"alice-session": "alice"})),
	))
}

// LimiterFor returns the limiter that the environment describes, for the users that identify finds.
func LimiterFor(identify func(core.Request) (string, error)) (*core.Limiter, error) {
	timeout, err := time.ParseDuration(cmp.Or(os.Getenv("REDIS_TIMEOUT"), "100ms"))
	if err != nil {
		return nil, fmt.Errorf("REDIS_TIMEOUT: %w", err)
	}
	options := core.Options{
		Identify: identify,
		ClientIP: clientIP(),
		Timeout:  timeout,
		Expose:   true, // so that POST /reply can ask who is calling
	}
	if options.ReferenceKeys, err = core.ParseReferenceKeys(os.Getenv("REFERENCE_KEYS")); err != nil {
		return nil, fmt.Errorf("REFERENCE_KEYS: %w", err)
	}
	if url := os.Getenv("REDIS_URL"); url != "" {
		server, err := redis.ParseURL(url)
		if err != nil {
			return nil, fmt.Errorf("REDIS_URL: %w", err)
		}
		// By default go-redis dials a dead server five times, 100 ms apart, and a call would wait
		// for that until its Timeout. With 1 it fails at once.
		server.DialerRetries = 1
		options.Redis = redis.NewClient(server) // connects on the first call
	}
	return core.New(options)
}

func clientIP() core.ClientIP {
	return core.ClientIP{TrustedProxies: list(os.Getenv("TRUSTED_PROXIES")), Header: os.Getenv("CLIENT_IP_HEADER")}
}

// known stands for a service's own check of tokens or sessions, which returns an error if it cannot
// be made.
func known(users map[string]string) func(ctx context.Context, token string) (user string, err error) {
	return func(_ context.Context, token string) (user string, err error) {
		return users[token], nil // "" is nobody
	}
}

func list(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == ' ' })
}
