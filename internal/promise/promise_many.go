package promise

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/accesslimit/accesslimit/core"
)

// ManyKeysTogether: calls on many counters at once get the answers that they would get one by one.
// They use all algorithms, at different limits and costs, and some are on two counters. The answers
// are the same while servers forget their scripts, charges are given back, and answers get lost. A
// single server decides the calls in scripts with the keys of several calls, unless that is turned
// off.
func ManyKeysTogether(t *testing.T, e Engine) {
	t.Run("exact", func(t *testing.T) { e.amongMany(t, e.Options(t), (*mixture).wantExact) })
	t.Run("one key in a script", func(t *testing.T) {
		options := e.Options(t)
		options.OneKeyPerScript = true
		e.amongMany(t, options, (*mixture).wantExact)
	})
	t.Run("the answer is lost", e.lostAmongMany)
}

// mixture holds counters of all algorithms, which are used at the same time.
type mixture struct {
	Engine
	t       *testing.T
	options core.Options
	limiter *core.Limiter
	round   string // distinguishes the counters of a round from those of others
	counts  []*count

	lostBefore uint64 // Stats.RefundsLost before the mixture
}

// count is a counter, with the sums of the calls on it. Some calls also count under another limit.
type count struct {
	facts
	subject           string
	one, both         core.Counter
	limit, also       core.Limit
	permits, alsoHeld atomic.Int64 // used and not given back, under limit and under also
	unknown           atomic.Int64 // permits of calls without an answer
	refunds           atomic.Int64 // at least the number of calls that were given back
}

const (
	mixtureMax     = 60 // permits of a counter in a mixture
	mixtureCalls   = 16 // calls of each goroutine
	mixtureCrowd   = 64 // goroutines
	mixtureRefunds = 10 // charges of a counter that are given back
	mixtureRounds  = 3
)

// amongMany uses one mixture after the other. From the second one on, it is proved for a single server that
// it holds all keys, so scripts have the keys of several calls. That they do is tested in package redisstore.
func (e Engine) amongMany(t *testing.T, options core.Options, check func(*mixture)) {
	limiter := newLimiter(t, options)
	for round := range mixtureRounds {
		m := e.newMixture(t, options, limiter, round)
		m.use()
		check(m)
	}
}

func (e Engine) newMixture(t *testing.T, options core.Options, limiter *core.Limiter, round int) *mixture {
	m := &mixture{Engine: e, t: t, options: options, limiter: limiter, round: fmt.Sprint("round", round), lostBefore: limiter.Stats().RefundsLost}
	for _, f := range algorithms {
		limit, also := f.lasting(mixtureMax), f.lasting(mixtureMax/2)
		if also.Window *= 2; f.Algorithm == core.TokenBucket {
			also.Burst = mixtureMax / 2
		}
		for i := range 3 {
			m.counts = append(m.counts, &count{
				facts: f, subject: fmt.Sprintf("%d}:{ \x00é:%%7D", i), limit: limit, also: also,
				one: limiter.MustCounter(m.round, limit), both: limiter.MustCounter(m.round, limit, also),
			})
		}
	}
	return m
}

// use makes many calls at once.
func (m *mixture) use() {
	var servers sync.WaitGroup
	for _, server := range m.clients(m.t) {
		servers.Go(func() { server.ScriptFlush(context.Background()) })
	}
	together(mixtureCrowd, func(goroutine int) {
		for i := range mixtureCalls {
			c := m.counts[(goroutine*7+i)%len(m.counts)]
			c.call(m, (goroutine+i)%3 == 0, 1+(goroutine+i)%4/2)
		}
	})
	servers.Wait()
}

// call makes a call on a counter, and perhaps gives its charge back.
func (c *count) call(m *mixture, both bool, n int) {
	counter := c.one
	if both {
		counter = c.both
	}
	d, err := counter.AllowN(context.Background(), c.subject, n)
	switch {
	case err != nil:
		c.unknown.Add(int64(n))
	case !d.Allowed:
		if d.Reason != core.LimitExceeded || d.RetryAfter <= 0 || d.Remaining >= n {
			m.t.Errorf("%d of %v are refused: %+v", n, c.limit, d)
		}
		return
	case c.refunds.Add(1) <= mixtureRefunds:
		if err := m.limiter.Refund(context.Background(), d, n); err != nil {
			m.t.Error(err)
		}
		return
	default:
		c.permits.Add(int64(n))
		if both {
			c.alsoHeld.Add(int64(n))
		}
	}
}

// wantExact checks the counters of a mixture: the permits used and those left add up, refused calls
// change nothing, and each key is short and expires.
func (m *mixture) wantExact() {
	m.t.Helper()
	for _, c := range m.counts {
		if c.unknown.Load() > 0 {
			m.t.Errorf("%q of %v: %d permits without an answer", c.subject, c.limit, c.unknown.Load())
		}
	}
	m.wantUsed(m.limiter)
	m.refusedChangesNothing()
}

// wantUsed checks how much is left under the limits of each counter. Buckets may have lost as many permits
// by refunds as Stats says.
func (m *mixture) wantUsed(look *core.Limiter) {
	m.t.Helper()
	lost := int(m.limiter.Stats().RefundsLost - m.lostBefore)
	for _, c := range m.counts {
		for limit, used := range map[core.Limit]int64{c.limit: c.permits.Load(), c.also: c.alsoHeld.Load()} {
			d, err := look.MustCounter(m.round, limit).Peek(context.Background(), c.subject)
			want := atOnce(limit) - int(used)
			missing := max(0, want-c.rounding-int(c.unknown.Load())-d.Remaining)
			if c.Algorithm == core.TokenBucket {
				missing, lost = max(0, missing-lost), lost-missing
			}
			if err != nil || want < 0 || d.Remaining > want || missing > 0 {
				m.t.Errorf("%q of %v: %d left, want %d; %v", c.subject, limit, d.Remaining, want, err)
			}
		}
	}
}

// refusedChangesNothing uses up one limit of each counter, and then makes calls under both limits
// in another process, which remembers no refusals. No key may change.
func (m *mixture) refusedChangesNothing() {
	m.t.Helper()
	for _, c := range m.counts {
		for d, err := c.one.Allow(context.Background(), c.subject); d.Allowed && err == nil; {
			d, err = c.one.Allow(context.Background(), c.subject)
		}
	}
	before := m.keys()
	limiter := m.limiter
	if !m.inProcess() {
		options := m.options
		options.Redis = m.connect(m.t, nil, 0)
		limiter = newLimiter(m.t, options)
	}
	together(mixtureCrowd, func(goroutine int) {
		c := m.counts[goroutine%len(m.counts)]
		d, err := limiter.MustCounter(m.round, c.also, c.limit).Allow(context.Background(), c.subject)
		if err != nil || d.Allowed || d.Reason != core.LimitExceeded {
			m.t.Errorf("%q of %v: %+v, %v", c.subject, c.limit, d, err)
		}
	})
	after := m.keys()
	if !maps.Equal(before, after) {
		m.t.Errorf("refused calls changed the servers' keys:\n%v\nbefore them:\n%v", after, before)
	}
	wantDead(m.t, after, time.Now().Add(400*24*time.Hour))
}

// keys returns the keys of all mixtures of this test.
func (m *mixture) keys() map[string]keyState {
	m.t.Helper()
	all, err := keysOf(m.clients(m.t), m.options.Prefix)
	if err != nil {
		m.t.Fatal(err)
	}
	maps.DeleteFunc(all, func(key string, _ keyState) bool { return strings.HasSuffix(key, ":probe") })
	return all
}

// lostAmongMany loses the answers to scripts that had the keys of several calls. Each call without
// an answer is charged at most once, and each other call exactly once.
func (e Engine) lostAmongMany(t *testing.T) {
	if e.inProcess() {
		return // no answer can be lost
	}
	var net network
	options := e.options(t, net.dial)
	others := options
	others.Redis = e.connect(t, nil, 0)
	look := newLimiter(t, others)
	e.amongMany(t, options, func(m *mixture) {
		for _, c := range m.counts {
			c.refunds.Store(mixtureRefunds)
		}
		net.losesReplies.Store(true)
		together(mixtureCrowd, func(goroutine int) { m.counts[goroutine%len(m.counts)].call(m, goroutine%2 == 0, 1) })
		net.losesReplies.Store(false)
		m.wantUsed(look)
	})
}
