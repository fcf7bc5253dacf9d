// Package rivals puts the limiters that are compared behind one face: one file for each, used as
// its documentation says.
//
// A further rival is a file with a Redis, an InProcess or a Middleware in it, and its line in the
// lists below.
package rivals

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/accesslimit/accesslimit/bench/internal/harness"
)

// Limit is what all rivals are asked to hold, each in the way that it counts.
type Limit struct {
	Max int
	// Window is the span of those who count in windows: a key lives as long.
	Window time.Duration
	// Permit is how long a bucket of Max permits takes to get one of them back. Its key lives until
	// what was used is back, so a slow refill keeps keys alive.
	Permit time.Duration
}

// rate is the refill in the usual words: so many permits in a span of a second or more.
func (l Limit) rate() (permits int, span time.Duration) {
	for permits = 10; l.Permit*time.Duration(permits) < time.Second; permits *= 10 {
	}
	return permits, l.Permit * time.Duration(permits)
}

// perSecond is the refill as x/time/rate has it.
func (l Limit) perSecond() float64 { return 1 / l.Permit.Seconds() }

// Roomy admits everything, and keeps each key alive for half a minute or more after a call: a call
// on a key that expired costs a server more than one on a key that lives. RoomyHot does so for a
// key that gets all calls.
var (
	Roomy    = Limit{Max: 1e6, Window: time.Minute, Permit: 30 * time.Second}
	RoomyHot = Limit{Max: 1e9, Window: time.Minute, Permit: time.Second}
)

// UsedUp admits so many calls and then none for as long as anything is measured.
var UsedUp = Limit{Max: 1000, Window: time.Hour, Permit: 5 * time.Minute}

// Names of the rivals that results are compared with.
const (
	TokenBucket   = "accesslimit TokenBucket"
	SlidingWindow = "accesslimit SlidingWindow"
	FixedWindow   = "accesslimit FixedWindow"
	RedisRate     = "redis_rate"
	Ulule         = "ulule"
	Bare          = "bare go-redis EvalSha"
)

// Place is the servers that counters are in.
type Place struct {
	Addrs   []string
	Cluster bool
}

// client is a go-redis client with its own defaults, as most users have it.
func (p Place) client() redis.UniversalClient {
	if p.Cluster {
		return redis.NewClusterClient(&redis.ClusterOptions{Addrs: p.Addrs})
	}
	return redis.NewClient(&redis.Options{Addr: p.Addrs[0]})
}

// Redis is a limiter whose counters are in Redis.
type Redis struct {
	Name string
	// Script says that a decision is one script call, whatever the state is, so that it can be
	// recorded and repeated.
	Script bool
	// Open makes a limiter as one process of a service has it.
	Open func(Place, Limit) (Opened, error)
}

// Opened is a limiter in use.
type Opened struct {
	Allow harness.AllowFunc
	Close func()
}

// OnRedis are the limiters that count in Redis, ours first.
var OnRedis = []Redis{
	onRedis(TokenBucket), onRedis(SlidingWindow), onRedis(FixedWindow),
	Leased, redisRate, ulule, throttledRedis, bare, rueidisScript,
}

// Find is the rival of a name; it panics for none, which is a mistake in this program.
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
	// Open makes a limiter that has room for so many keys.
	Open func(l Limit, keys int) (allow func(subject string) bool, closeIt func())
}

// InThisProcess are the limiters that count in the process, ours first.
var InThisProcess = []InProcess{
	inProcess(TokenBucket), inProcess(SlidingWindow), inProcess(FixedWindow),
	rateInMap, httprateCounter, sethvargo, ululeMemory, throttledMemory, echoStore, tollboothKeys,
}

// Middleware is a limit around a handler that does nothing.
type Middleware struct {
	Framework string
	Name      string // None: the handler alone
	// Open returns what makes a caller for each goroutine: a function that has one call served.
	Open func() (newCaller func() (call func()), closeIt func())
}

// None names a handler without a limit.
const None = "no limit"

// Middlewares are the limits around handlers: for each framework first none, then ours.
var Middlewares = []Middleware{
	bareNetHTTP, ourNetHTTP, ululeNetHTTP, httprateNetHTTP, throttledNetHTTP, tollboothNetHTTP,
	bareGin, ourGin, ululeGin,
	bareEcho, ourEcho, echoEcho,
	bareFiber, ourFiber, fiberFiber,
	bareFastHTTP, ululeFastHTTP,
	bareGRPC, ourGRPC,
}

// Left are limiters that were tried and are not measured, and why.
var Left = [][2]string{
	{"github.com/redis/rueidis/rueidislimiter", "could not be fetched when this was measured; rueidis itself is measured, with a token bucket's script"},
	{"fiber's own limiter, in process", "its store cannot be called without its middleware, which is measured"},
	{"github.com/mennanov/limiters", "has one object for each key, and its one package needs the clients of AWS, etcd and PostgreSQL: another 118 packages to build"},
}

// background is the context of calls where only the limiter is measured.
var background = context.Background()
