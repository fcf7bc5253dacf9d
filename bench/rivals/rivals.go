// Package rivals gives all compared limiters the same interface. Each has its own file and is used
// as its documentation recommends.
//
// To add a rival, add a file with a Redis, an InProcess or a Middleware in it, and a line in the
// lists below.
package rivals

import (
	"context"
	"net"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/accesslimit/accesslimit/bench/harness"
	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/internal/algorithms"
)

// Limit is the limit that all rivals apply, each in its own way of counting.
type Limit struct {
	Max int
	// Window is the window of rivals that count in windows, and the lifetime of their keys.
	Window time.Duration
	// Permit is how long a bucket of Max permits takes to get one of them back. Its key lives until
	// the bucket is full again, so a slow refill keeps keys alive.
	Permit time.Duration
}

// rate returns the refill as a number of permits in a span of a second or more.
func (l Limit) rate() (permits int, span time.Duration) {
	for permits = 10; l.Permit*time.Duration(permits) < time.Second; permits *= 10 {
	}
	return permits, l.Permit * time.Duration(permits)
}

// perSecond returns the refill in permits per second, as x/time/rate expects it.
func (l Limit) perSecond() float64 { return 1 / l.Permit.Seconds() }

// Roomy admits everything and keeps each key for at least ten minutes after a call. No part takes
// that long, so no key expires meanwhile: a call on an expired key costs a server more than one on
// an existing key. RoomyHot does the same for a key that gets all calls.
var (
	Roomy    = Limit{Max: 1e6, Window: 10 * time.Minute, Permit: 10 * time.Minute}
	RoomyHot = Limit{Max: 1e9, Window: time.Minute, Permit: time.Second}
)

// UsedUp admits Max calls and then none until the measurement ends.
var UsedUp = Limit{Max: 1000, Window: time.Hour, Permit: 5 * time.Minute}

// Names of the rivals that results are compared with.
const (
	TokenBucket   = "accesslimit TokenBucket"
	SlidingWindow = "accesslimit SlidingWindow"
	FixedWindow   = "accesslimit FixedWindow"
	OneKey        = TokenBucket + OneKeyEach
	OneKeyEach    = ", one key per script"
	Here          = "accesslimit TokenBucket, without Redis"
	ByTheHour     = "accesslimit TokenBucket, by the hour"
	NoOverride    = "accesslimit SlidingWindow, overrides, none set"
	Overridden    = "accesslimit SlidingWindow, overrides, all set"
	Billed        = "accesslimit SlidingWindow, Open and Settle"
	RedisRate     = "redis_rate"
	Ulule         = "ulule"
	Bare          = "bare go-redis EvalSha"
	SameScript    = "bare go-redis EvalSha, our script"
	Rueidis       = "rueidis, the same script"
	GoLimiter     = "sethvargo/go-limiter"
	Floor         = "hash, clock, one compare-and-swap"

	// OnAutoPipeline is added to the name of a rival on go-redis's own pipeliner, and FullDuplex if that is
	// in full duplex.
	OnAutoPipeline = " on AutoPipeline"
	FullDuplex     = ", full duplex"
)

// Place is a database of a server, or a cluster.
type Place struct {
	Addr    string
	DB      int
	Cluster bool
	dial    func(ctx context.Context, network, addr string) (net.Conn, error) // nil: as go-redis does
}

// client returns a go-redis client with default options, as most users have it.
func (p Place) client() redis.UniversalClient {
	return redis.NewUniversalClient(&redis.UniversalOptions{Addrs: []string{p.Addr}, DB: p.DB, IsClusterMode: p.Cluster, Dialer: p.dial})
}

// Redis is a limiter whose counters are in Redis.
type Redis struct {
	Name string
	// Costs reports whether to measure what a decision and a key cost the server. CostsOnly reports
	// whether to measure nothing else.
	Costs, CostsOnly bool
	// Open returns a limiter as one process of a service would have it.
	Open func(Place, Limit) (Opened, error)
}

// Opened is a limiter in use.
type Opened struct {
	Allow harness.AllowFunc
	Close func()
	// Override, unless nil, sets an override for a subject. It is called before the first call.
	Override func(subject string) error
}

// OnRedis are the limiters that count in Redis, ours first.
var OnRedis = append([]Redis{
	onRedis(TokenBucket, core.Options{}), onRedis(SlidingWindow, core.Options{}), onRedis(FixedWindow, core.Options{}),
	onRedis(OneKey, oneKeyPerScript), onRedis(Here, core.Options{}), Leased, overridable(NoOverride), overridable(Overridden), billed,
	redisRate, ulule, throttledRedis, bare, sameScript, rueidisScript,
	onAutoPipeline(RedisRate, false, redisRateOn), onAutoPipeline(RedisRate, true, redisRateOn),
	onAutoPipeline(Bare, false, bareOn), onAutoPipeline(Bare, true, bareOn),
}, oneKeyEach()...)

// oneKeyEach returns the other algorithms with one key per script, to show what each costs.
func oneKeyEach() (all []Redis) {
	for _, a := range algorithms.All() {
		if name := "accesslimit " + a.String() + OneKeyEach; name != OneKey {
			r := onRedis(name, oneKeyPerScript)
			r.CostsOnly = true
			all = append(all, r)
		}
	}
	return all
}

// Find returns the rival with this name. It panics if there is none, which is a mistake in this
// program.
func Find(name string) Redis {
	for _, r := range OnRedis {
		if r.Name == name {
			return r
		}
	}
	panic("rivals: no " + name)
}

// InProcess is a limiter that counts in the process.
type InProcess struct {
	Name string
	// Open returns a limiter that has room for this many keys.
	Open func(l Limit, keys int) (allow func(subject string) bool, closeIt func())
}

// InThisProcess are the limiters that count in the process, ours first.
var InThisProcess = []InProcess{
	inProcess(TokenBucket), inProcess(ByTheHour), inProcess(SlidingWindow), inProcess(FixedWindow),
	floor, otterBuckets, rateInMap, httprateCounter, sethvargo, ululeMemory, throttledMemory, echoStore, tollboothKeys,
}

// Middleware is a limit around a handler that does nothing.
type Middleware struct {
	Framework string
	Name      string // None: the handler alone
	// Like is the name of our middleware that sends the same headers, or "" if there is none.
	Like string
	// Open returns a function that each goroutine calls once.
	Open func() (caller newCaller, closeIt func())
}

// Names of middlewares: a handler without a limit; ours with the default headers, with the older
// headers that most others send, and without headers; and our check inside the handler.
const (
	None           = "no limit"
	Ours           = "accesslimit"
	OursXRateLimit = "accesslimit, X-RateLimit"
	OursNoHeaders  = "accesslimit, no headers"
	InHandler      = "accesslimit.Allow in the handler"
)

// Middlewares are the limits around handlers: for each framework first none, then ours.
var Middlewares = slices.Concat(
	limitsOf(netHTTP, ululeNetHTTP, httprateNetHTTP, httprateQuietNetHTTP, throttledNetHTTP, tollboothNetHTTP),
	limitsOf(ginFramework, ululeGin), limitsOf(echoFramework, echoEcho), limitsOf(fiberFramework, fiberFiber),
	limitsOf(echo5Framework, echo5Echo), limitsOf(fiber3Framework, fiber3Fiber),
	[]Middleware{bareFastHTTP, ululeFastHTTP, bareGRPC, ourGRPC},
)

// Left lists the limiters that were tried but are not measured, each with the reason.
var Left = []string{
	"rueidislimiter, which could not be fetched",
	"fiber's own limiter in process, whose store needs its middleware",
	"mennanov/limiters, which needs another 118 packages",
}

// background is the context of calls where only the limiter is measured.
var background = context.Background()
