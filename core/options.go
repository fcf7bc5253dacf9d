package core

import (
	"context"
	"log/slog"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/accesslimit/accesslimit/core/internal/rediskey"
)

// Options are a Limiter's. The zero value counts in this process.
type Options struct {
	// Redis holds the counters: a single server, Sentinel, Cluster or Ring; unset, they are in this process alone. The
	// client stays yours: its options are not changed and Close does not close it, but its hooks do not see our commands. A client
	// of a type of your own works, too, but one call at a time and without a breaker: it may stand for several servers.
	// Needs Redis 6.2 or later. Danger: an evicting maxmemory policy forgets counters; use noeviction.
	Redis redis.UniversalClient
	// Prefix is what every key starts with, at most 40 bytes of letters, digits and -._~:/@ ; "accesslimit" unless set.
	// Danger: services that share a prefix and a Redis share their counters.
	Prefix string
	// Timeout bounds each decision in Redis, 1 ms to 1 minute; 100 ms unless set. A nearer deadline of the caller's own
	// context is kept too. Danger: it is by how much a hanging Redis can delay every call.
	Timeout time.Duration
	// MaxKeys bounds the counters kept in this process; with Redis, those of CountLocally. 250,000
	// unless set. A call needs one for each limit and ban of its rules; if that is more than
	// MaxKeys, the process keeps that many. Danger: beyond this number, the counters that were not
	// used for longest are forgotten, and start afresh.
	MaxKeys int

	// Identify says who calls; required by rules with NeedLogin. See BearerToken, Cookie, ContextValue and FirstOf.
	Identify IdentifyFunc
	// ClientIP says how the caller's address is found; the connection's peer unless set.
	ClientIP ClientIP

	// Headers is which headers tell callers their limits; HeadersDraft10 unless set.
	Headers HeaderStyle
	// Reply, when set, may change the status, the content type and the body of a refusal, for all HTTP frameworks at
	// once; nothing else of what it returns is taken, nor a status outside 200 to 599, nor an empty content type.
	Reply func(Request, Refusal) Refusal

	// Logger takes what an operator should know: which engine runs; that Redis does not answer, why, what to change and how many
	// calls it touches, at most once a minute while it lasts; that it answers again; that it was restarted, or evicts keys.
	// It warns once of what is put together wrongly: a proxy that is not trusted, or calls without an address, before rules by IP; a
	// rule that is attached twice around a handler; an unnamed rule where the route is not known yet.
	// slog.Default() unless set.
	Logger *slog.Logger
	// OnDecision, when set, receives every decision, before the handler runs and in its
	// goroutine: once for the rules that are decided together, and once for each rule in DryRun. If
	// it panics, the call ends as if its handler had: its slots are free, and Count receives 500 or
	// 13. Danger: every call waits for it.
	OnDecision func(context.Context, Event)
	// Expose makes DecisionFrom and UserFrom work in handlers, for two or three allocations a call.
	Expose bool
}

const (
	defaultPrefix  = "accesslimit"
	defaultTimeout = 100 * time.Millisecond
	defaultMaxKeys = 250_000
)

// withDefaults fills in what is unset and finds what is wrong.
func (o Options) withDefaults() (Options, error) {
	wrong := func(field string, value any, why string) (Options, error) {
		return o, &RuleError{Field: "Options." + field, Value: value, Why: why}
	}
	if o.Prefix == "" {
		o.Prefix = defaultPrefix
	}
	if o.Timeout == 0 {
		o.Timeout = defaultTimeout
	}
	if o.MaxKeys == 0 {
		o.MaxKeys = defaultMaxKeys
	}
	if o.Headers == 0 {
		o.Headers = HeadersDraft10
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	o.Prefix = strings.Clone(o.Prefix)
	switch {
	case len(o.Prefix) > rediskey.MaxPrefix || strings.ContainsFunc(o.Prefix, unsafeInPrefix):
		return wrong("Prefix", o.Prefix, "must be at most 40 letters, digits and -._~:/@")
	case o.Timeout < time.Millisecond || o.Timeout > time.Minute:
		return wrong("Timeout", o.Timeout, "must be 1 ms to 1 minute")
	case o.MaxKeys < 0:
		return wrong("MaxKeys", o.MaxKeys, "must be positive")
	}
	return o, o.Headers.check()
}

func unsafeInPrefix(r rune) bool {
	letter := 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z'
	return !letter && !('0' <= r && r <= '9') && !strings.ContainsRune("-._~:/@", r)
}
