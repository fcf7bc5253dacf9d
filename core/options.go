package core

import (
	"context"
	"log/slog"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/accesslimit/accesslimit/core/internal/clientip"
	"github.com/accesslimit/accesslimit/core/internal/limitheader"
	"github.com/accesslimit/accesslimit/core/internal/rediskey"
	"github.com/accesslimit/accesslimit/core/internal/reference"
)

// Options configure a Limiter. The zero value counts in this process.
type Options struct {
	// Redis holds the counters: the client of a single server, Sentinel, Cluster or Ring, version
	// 6.2 or later. If it is unset, there is no Redis: counts stay in this process, and a line in
	// the log says so.
	//
	// The client stays yours: its options are not changed, and Close does not close it. Its hooks,
	// such as those for tracing, do not see the limiter's commands, which carry the calls of many
	// callers at once; Limiter.Stats counts them. A client of a type of your own works too, but
	// without a breaker and with one call at a time, because it may stand for several servers.
	//
	// Set DialerRetries to 1 in the client's options. By default, go-redis dials a server that is
	// down five times, 100 ms apart, and a call waits for that until Timeout.
	//
	// Danger: a maxmemory policy that evicts keys forgets counters. Use noeviction.
	Redis redis.UniversalClient
	// Prefix begins every key: at most 40 letters, digits and -._~:/@ ; "accesslimit" by default.
	// Danger: services that share a prefix and a Redis share their counters.
	Prefix string
	// Timeout bounds each decision in Redis: 1 ms to 1 minute, 100 ms by default. An earlier
	// deadline of the caller's own context is kept too, and of a client of a type of your own its
	// ReadTimeout. Danger: a Redis that hangs delays each call by this time, until the breaker opens.
	Timeout time.Duration
	// OneKeyPerScript gives every call on another key, and every subject of a call, a script of its
	// own. By default, one script decides a call on several subjects, and calls on up to 24 keys if
	// many wait for Redis at once, if a test has shown that one server holds all keys. It never does
	// so in a cluster. Sharing a script saves the server up to 40 % of its time.
	//
	// Danger: the test is repeated every 10 to 20 seconds, and after a trip without an answer. If the address
	// of one server becomes that of a proxy for several meanwhile, counters may admit twice their limit
	// until then. Set this if that can happen. REDIS.md says which proxies work.
	OneKeyPerScript bool
	// MaxKeys bounds the number of counters in this process. With Redis, only CountLocally keeps
	// counters here. The default is 250,000: 55 to 90 MB. A call needs one for each limit of its rules.
	// Without Redis, a threshold that was reported takes a place as well, and so does a bill until it
	// expires, or for five minutes after it was settled. If one call needs more than MaxKeys, the
	// process keeps that many. Danger: beyond this number, the counters that were not used for longest
	// are forgotten, and start afresh.
	MaxKeys int

	// Identify returns the user who calls, or "" for a caller who is not logged in. Rules with NeedLogin
	// require it. See BearerToken, Cookie, ContextValue and FirstOf. An error means that the caller could
	// not be identified. A rule with NeedLogin then answers 503, not 401, unless a limit that does not
	// depend on the user refuses the call with 429.
	//
	// The function runs at most once a call in each middleware that needs the user, however many rules
	// that has. It does not run for calls that need no user, nor while a limit that does not depend on
	// the user still refuses as it did before.
	Identify func(Request) (user string, err error)
	// ClientIP says how the caller's address is found. By default it is the connection's peer.
	ClientIP ClientIP

	// Headers are the headers that tell callers their limits: HeadersDraft10 by default.
	Headers HeaderStyle
	// Reply, if set, may change the status, the content type and the body of a refusal, for all
	// HTTP frameworks. Its other fields are ignored, and so are a status outside 200 to 599 and an
	// empty content type.
	Reply func(Request, Refusal) Refusal
	// ReferenceKeys, if set, give each refusal a reference: an encrypted text that says when, by
	// which rule and why the call was refused, and about whom. A caller quotes it to you, and
	// ExplainReference of package operate reads it, in any process with the same keys. Nothing is stored.
	// There are at most ten keys, each of at least 32 random bytes, which [ParseReferenceKeys] reads
	// from a text. The first key makes references, and all of them read references. To replace a
	// key, add the new one as the last in all processes, then put it first, and later remove the old
	// one. A key may make 2^32 references in its life: at 1,000 refusals a second, replace it every
	// 49 days.
	// The default is no keys, and no references. Danger: anybody who has a key can make up
	// references, and can test whether one is about a subject that they guess.
	ReferenceKeys [][]byte

	// Logger receives what an operator should know. The default is slog.Default().
	//
	// While Redis does not answer, it says at most once a minute why, what to change, and how many
	// calls were affected. It also says where counts are kept, when Redis answers again, and
	// whether Redis was restarted or evicts keys.
	//
	// It warns once of mistakes: a rule by user without Identify; a proxy that is not trusted, or
	// calls without an address, in front of rules by IP; an unnamed rule where the route is not
	// known yet.
	Logger *slog.Logger
	// OnDecision, if set, receives every decision on rules that are decided together, in the goroutine
	// of the call and before the handler runs. It also receives calls that go out, and refusals of
	// these by the server.
	// If it panics, the call ends as if its handler had: its slots are free, and Count receives 500
	// or 13. Danger: every call waits for it.
	// It receives the decision of each rule in DryRun by itself, with Redis in the background. The
	// context then has the values of the call's, and does not end with it. A panic is logged.
	OnDecision func(context.Context, Event)
	// OnThreshold, if set, receives the thresholds of rules with [Rule].Warn, one after the other,
	// in a goroutine of its own. Its context ends with the Limiter. A panic in it is logged.
	// Danger: reports wait for each other. When 4,096 wait, or 8 MiB of subjects, further ones are
	// dropped, and the log says so. So start a goroutine of your own to send messages.
	OnThreshold func(context.Context, Threshold)
	// Expose makes DecisionFrom and UserFrom work in handlers, for two or three allocations a call.
	// Without it, DecisionFrom finds only the decisions with the Reason SoftExceeded.
	Expose bool
}

const (
	defaultPrefix  = rediskey.DefaultPrefix
	defaultTimeout = 100 * time.Millisecond
	defaultMaxKeys = 250_000
)

// withDefaults returns the options with unset fields filled in, or an error that says what is
// wrong.
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
	case !rediskey.IsPrefix(o.Prefix):
		return wrong("Prefix", o.Prefix, "must be at most 40 letters, digits and -._~:/@")
	case o.Timeout < time.Millisecond || o.Timeout > time.Minute:
		return wrong("Timeout", o.Timeout, "must be 1 ms to 1 minute")
	case o.MaxKeys < 0:
		return wrong("MaxKeys", o.MaxKeys, "must be positive")
	}
	if bad := reference.CheckSecrets(o.ReferenceKeys); bad != nil {
		return wrong("ReferenceKeys", bad.Value, bad.Why)
	}
	if why := limitheader.Style(o.Headers).Check(); why != "" {
		return wrong("Headers", uint8(o.Headers), why)
	}
	return o, nil
}

// ClientIP configures how the caller's address is found. With the zero value it is the address of
// the connection's peer, and headers are ignored, because anybody can send them.
type ClientIP struct {
	// TrustedProxies are the addresses and CIDR ranges of your own proxies, and "unix" for those
	// that connect over a unix socket; none by default. The header is read only if the peer is one
	// of them. It is read from right to left, while the addresses are trusted. The first address
	// that is not trusted is the client's. If an entry cannot be read, the client's address is the
	// one to the right of it.
	//
	// Danger: anybody who can connect from a trusted address can choose the address that is
	// counted.
	TrustedProxies []string
	// Header is the header in which the proxies write the caller's address: X-Forwarded-For by
	// default, "Forwarded" (RFC 7239), or one that holds a single address, such as X-Real-IP.
	// Danger: name only a header that your proxies set or append to on every call.
	Header string
	// IPv6Prefix is the number of leading bits by which IPv6 addresses are counted: 32 to 128, 64
	// by default, because a single customer usually has a /64 of addresses to choose from.
	IPv6Prefix int
}

func (c ClientIP) compile() (*clientip.Finder, error) {
	finder, wrong := clientip.New(clientip.Config(c))
	if wrong != nil {
		return nil, &RuleError{Field: "Options.ClientIP." + wrong.Field, Value: wrong.Value, Why: wrong.Why}
	}
	return finder, nil
}

// ParseReferenceKeys reads keys for [Options].ReferenceKeys from a text, as an environment variable
// or a file holds them: in hex, as "openssl rand -hex 32" prints one, and separated by commas or
// white space. All processes, and the programs that read references, then have the same keys. An
// empty text has none. The error is a *[RuleError], and does not show the keys.
func ParseReferenceKeys(text string) ([][]byte, error) {
	keys, bad := reference.ParseSecrets(text)
	if bad != nil {
		return nil, &RuleError{Field: "Options.ReferenceKeys", Value: bad.Value, Why: bad.Why}
	}
	return keys, nil
}
