package promise

import (
	"context"
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/accesslimit/accesslimit/core"
)

// AllOrNone: a call is charged to all of its rules or to none. If their counters are on several
// servers, the charges of a refused call are back by the time the limiter is closed, but for those that
// a bucket loses: see core.Limiter.Refund.
func AllOrNone(t *testing.T, e Engine) {
	eachAlgorithm(t, func(t *testing.T, f facts) {
		wide, narrow := ruleOf("wide", f.lasting(1000)), ruleOf("narrow", f.lasting(20))
		everybody := wide
		everybody.Key = core.Global // for most callers, its counter is on another server than their own
		t.Run("one server", func(t *testing.T) {
			for _, c := range e.crowded(t, f, wide, narrow) {
				for i := range callers {
					c.of(subjectOf(callerNamed(i))).wantLeft(1000 - 20)
				}
			}
		})
		t.Run("several servers", func(t *testing.T) {
			for _, c := range e.crowded(t, f, everybody, narrow) {
				left, lost := c.of("wide").peek().Remaining, int(c.limiter.Stats().RefundsLost)
				if want := 1000 - callers*20; left > want || left < want-f.rounding-lost || lost > 0 && f.Algorithm != core.TokenBucket {
					t.Errorf("%d left, want %d", left, want)
				}
			}
		})
		t.Run("closed meanwhile", func(t *testing.T) { e.closedMeanwhile(t, f, everybody) })
		t.Run("refused without a trace", func(t *testing.T) { e.refusedTogether(t, f) })
	})
}

const (
	callers   = 6
	eachComes = 64
)

func callerNamed(i int) string { return fmt.Sprint("caller", i) }

// crowded lets many callers call at once. The narrow rule lets twenty calls of each caller pass.
// The rules are tried in both orders. crowded returns the counters of the wide rule, without a
// subject.
func (e Engine) crowded(t *testing.T, f facts, wide, narrow core.Rule) (counters []counter) {
	for _, rules := range [][]core.Rule{{wide, narrow}, {narrow, wide}} {
		options := e.Options(t)
		limiter := newLimiter(t, options)
		if passed := crowd(limiter.MustGuard(rules...)); passed != callers*20 {
			t.Errorf("%d calls passed, want %d", passed, callers*20)
		}
		limiter.Close() // waits until charges are given back; counting continues
		keys, err := keysOf(e.clients(t), options.Prefix)
		if err != nil {
			t.Fatal(err)
		}
		// The machine's clock is the servers' too.
		wantDead(t, keys, time.Now().Add(f.lives(f.lasting(1000))+time.Minute))
		counters = append(counters, counter{t: t, limiter: limiter, name: "wide", limit: f.lasting(1000)})
	}
	return counters
}

// crowd lets each caller call many times at once, and returns how many calls passed.
func crowd(guard *core.Guard) int {
	var passed atomic.Int64
	together(eachComes, func(int) {
		for i := range callers {
			if guard.Check(callBy(context.Background(), callerNamed(i))).Refusal == nil {
				passed.Add(1)
			}
		}
	})
	return int(passed.Load())
}

// closedMeanwhile closes a limiter that still has charges to give back, over a slow network.
func (e Engine) closedMeanwhile(t *testing.T, f facts, everybody core.Rule) {
	var net network
	options := e.options(t, net.dial)
	limiter := newLimiter(t, options)
	guard := limiter.MustGuard(everybody, ruleOf("narrow", f.lasting(1)))
	for range 2 { // the second time, each guest is refused
		together(callers, func(i int) { guard.Check(callBy(context.Background(), callerNamed(i))) })
		net.slow.Store(true)
	}
	limiter.Close()
	net.slow.Store(false)
	left := counter{t: t, limiter: limiter, name: "wide", subject: "wide", limit: f.lasting(1000)}.peek().Remaining
	lost := int(limiter.Stats().RefundsLost)
	if want := 1000 - callers; left > want || left < want-f.rounding-lost || lost > 0 && f.Algorithm != core.TokenBucket {
		t.Errorf("%d left once the limiter is closed, want %d", left, want)
	}
}

// refusedTogether makes calls that a used-up rule refuses. No other counter of the call may be
// created.
func (e Engine) refusedTogether(t *testing.T, f facts) {
	options, used := e.Options(t), f.lasting(2)
	guard := watchGuard(t, options, ruleOf("fresh", f.lasting(10)), ruleOf("used up", used))
	c := counter{t: t, limiter: guard.limiter, name: "used up", subject: subjectOf("caller"), limit: used}
	c.mustTake(2)
	before, err := keysOf(e.clients(t), options.Prefix)
	if err != nil {
		t.Fatal(err)
	}
	for range 5 {
		if got := status(guard.Check(callBy(context.Background(), "caller"))); got != http.StatusTooManyRequests {
			t.Fatalf("status %d, want %d", got, http.StatusTooManyRequests)
		}
		if d := guard.last; d.Rule != "used up" || d.Reason != core.LimitExceeded || len(d.All) != 2 || !d.All[1].Allowed {
			t.Errorf("%+v, want the used up limit first, and the fresh one not over", d)
		}
	}
	after, err := keysOf(e.clients(t), options.Prefix)
	if err != nil || len(after) != len(before) {
		t.Errorf("%d keys, and before the calls that were refused %d; %v", len(after), len(before), err)
	}
	c.name, c.limit = "fresh", f.lasting(10)
	c.wantLeft(10)
}
