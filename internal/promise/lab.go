package promise

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/accesslimit/accesslimit/core"
)

// lab is an engine whose time passes only as a test says. Tests play in a bubble of
// testing/synctest, where time.Sleep takes no time and is exact. The counters of this process go by
// the bubble's clock by themselves; real servers are told it by the client, which makes their
// scripts take the time as their last argument.
//
// Nothing that users can reach knows of it: what runs is the production code, and the production
// scripts but for the two lines that read the clock.
type lab struct {
	engine  Engine
	client  *timedClient // nil in process
	servers []*redis.Client
}

// newLab prepares an engine. It must be made outside of the bubble.
func (e Engine) newLab(t testing.TB) *lab {
	l := &lab{engine: e}
	if e.inProcess() {
		return l
	}
	l.client = &timedClient{UniversalClient: e.connect(t, nil), outside: newOutside(t), texts: make(map[string]string)}
	for _, server := range e.Servers {
		l.servers = append(l.servers, server.Client(t))
	}
	return l
}

// beginning is when every bubble's time begins, so late that no real server finds a time to live
// over that it is given.
var beginning = time.Date(2100, time.January, 1, 0, 0, 0, 0, time.UTC)

// labKeys is how many counters a limiter in a lab may have: so few that the table of this process
// has one part. All of its parts are swept every second, and a bubble lives through every second of
// an hour that a test sleeps.
const labKeys = 1000

// bubble runs a test in fake time, with options for limiters that have counters of their own. The
// test must close them.
func (l *lab) bubble(t *testing.T, test func(t *testing.T, options core.Options)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(beginning))
		options := core.Options{Prefix: newPrefix(), Logger: silent, Timeout: patient, MaxKeys: labKeys}
		if l.client != nil {
			options.Redis = l.client
			l.client.step = 0
		}
		test(t, options)
	})
}

// play is bubble for a property: what is wrong is returned, because rapid can make that smaller
// only if the test has not failed yet.
func (l *lab) play(t *testing.T, test func(limiter *core.Limiter) error) (wrong error) {
	t.Helper()
	l.bubble(t, func(t *testing.T, options core.Options) { wrong = test(newLimiter(t, options)) })
	return wrong
}

// eachLimit runs a test in a bubble for every limit, on a counter that nobody used.
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

// others makes limiters of other processes, which know nothing of what this one was told. In
// process there are none.
func (l *lab) others(t *testing.T, options core.Options, this *core.Limiter) func() *core.Limiter {
	return func() *core.Limiter {
		if l.client == nil {
			return this
		}
		return newLimiter(t, options)
	}
}

// step makes the servers' clocks jump, backwards for a negative d. In process nothing happens: that
// clock never jumps.
func (l *lab) step(d time.Duration) {
	if l.client != nil {
		l.client.step += d
	}
}
