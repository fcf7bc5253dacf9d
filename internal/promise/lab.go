package promise

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/internal/scriptclock"
)

// lab is an engine with fake time. Its tests run in a bubble of testing/synctest, where time.Sleep
// takes no time and is exact. Counters in this process use the bubble's clock. For real servers,
// the client passes the bubble's time to the scripts as their last argument.
//
// The code under test knows nothing of this. The scripts are those of production, except for the
// two lines that read the clock.
type lab struct {
	engine  Engine
	client  *scriptclock.Client // nil in process
	outside *outside
	ahead   atomic.Int64 // by how many nanoseconds the servers' clocks are ahead of the bubble's
	servers []*redis.Client
}

// newLab prepares an engine. It must be called outside of the bubble.
func (e Engine) newLab(t testing.TB) *lab {
	l := &lab{engine: e}
	if e.inProcess() {
		return l
	}
	l.outside = newOutside(t)
	l.client = scriptclock.NewClient(outsideClient{e.connect(t, nil, patient), l.outside},
		func() int64 { return l.now().UnixMicro() }, scriptclock.TakeTimeAndExpire)
	for _, server := range e.Servers {
		l.servers = append(l.servers, server.Client(t))
	}
	return l
}

// beginning is the time at which each bubble begins. It is so late that no key expires on a real
// server.
var beginning = time.Date(2100, time.January, 1, 0, 0, 0, 0, time.UTC)

// labKeys is the MaxKeys of limiters in a lab. It is so small that the table of counters has one
// shard. All shards are swept every second, and a test that sleeps for an hour in a bubble runs each
// of these sweeps.
const labKeys = 1000

// bubble runs a test in fake time, with options for limiters that have counters of their own. The
// test must close its limiters.
func (l *lab) bubble(t *testing.T, test func(t *testing.T, options core.Options)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(beginning))
		options := core.Options{Prefix: newPrefix(), Logger: silent, Timeout: patient, MaxKeys: labKeys}
		if l.client != nil {
			options.Redis = l.client
			l.ahead.Store(0)
		}
		test(t, options)
	})
}

// play is bubble for a property. It returns the error, because rapid can simplify a failing case
// only if the test has not failed yet.
func (l *lab) play(t *testing.T, test func(limiter *core.Limiter) error) (wrong error) {
	t.Helper()
	l.bubble(t, func(t *testing.T, options core.Options) { wrong = test(newLimiter(t, options)) })
	return wrong
}

// eachLimit runs a test in a bubble for each limit, on a fresh counter.
func (l *lab) eachLimit(t *testing.T, what string, test func(c counter, f facts)) {
	t.Run(what, func(t *testing.T) {
		for _, f := range algorithms {
			for _, limit := range f.limits() {
				t.Run(limit.name, func(t *testing.T) { l.onLimit(t, limit.Limit, f, test) })
			}
		}
	})
}

func (l *lab) onLimit(t *testing.T, limit core.Limit, f facts, test func(c counter, f facts)) {
	l.bubble(t, func(t *testing.T, options core.Options) {
		c := counter{t: t, limiter: newLimiter(t, options), prefix: options.Prefix, name: "name", subject: "subject", limit: limit}
		c.another = l.others(t, options, c.limiter)
		test(c, f)
	})
}

// others returns a function that makes limiters of other processes, which do not know what this one
// remembers. In process there is only this one.
func (l *lab) others(t *testing.T, options core.Options, this *core.Limiter) func() *core.Limiter {
	return func() *core.Limiter {
		if l.client == nil {
			return this
		}
		return newLimiter(t, options)
	}
}

// now returns the time by the servers' clocks.
func (l *lab) now() time.Time { return time.Now().Add(time.Duration(l.ahead.Load())) }

// step makes the servers' clocks jump, backwards if d is negative. In process it does nothing,
// because the clock there never jumps.
func (l *lab) step(d time.Duration) {
	if l.client != nil {
		l.ahead.Add(int64(d))
	}
}
