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

// AllOrNone: of a call that several rules count, either all count it or none does. Where their
// counters lie on several servers, what was charged for a call that is then refused is back by the
// time the limiter has been closed.
func AllOrNone(t *testing.T, e Engine) {
	eachAlgorithm(t, func(t *testing.T, f facts) {
		wide, narrow := ruleOf("wide", f.lasting(1000)), ruleOf("narrow", f.lasting(20))
		everybody := wide
		everybody.Key = core.Global // its counter lies on another server than most guests' own
		t.Run("one server", func(t *testing.T) {
			for _, c := range e.crowded(t, f, wide, narrow) {
				for i := range guests {
					c.of(subjectOf(guestNamed(i))).wantLeft(1000 - 20)
				}
			}
		})
		t.Run("several servers", func(t *testing.T) {
			for _, c := range e.crowded(t, f, everybody, narrow) {
				left := c.of("wide").peek().Remaining
				if want := 1000 - guests*20; left > want || left < want-f.rounding {
					t.Errorf("%d left, want %d", left, want)
				}
			}
		})
		t.Run("closed meanwhile", func(t *testing.T) { e.closedMeanwhile(t, f, everybody) })
		t.Run("refused without a trace", func(t *testing.T) { e.refusedTogether(t, f) })
	})
}

const (
	guests    = 6
	eachComes = 64
)

func guestNamed(i int) string { return fmt.Sprint("guest", i) }

// crowded has guests come in crowds, of whom the narrow rule lets twenty calls each through, with
// the rules in either order. It returns the counters of the wide rule, of a subject to be named.
func (e Engine) crowded(t *testing.T, f facts, wide, narrow core.Rule) (counters []counter) {
	for _, rules := range [][]core.Rule{{wide, narrow}, {narrow, wide}} {
		options := e.Options(t)
		limiter := newLimiter(t, options)
		if passed := crowd(limiter.MustGuard(rules...)); passed != guests*20 {
			t.Errorf("%d calls passed, want %d", passed, guests*20)
		}
		limiter.Close() // waits for what is being given back; counting goes on
		keys, err := keysOf(e.clients(t), options.Prefix)
		if err != nil {
			t.Fatal(err)
		}
		wantDead(t, keys, time.Now().Add(f.lives(f.lasting(1000))+time.Minute)) // the machine's clock is the servers' too
		counters = append(counters, counter{t: t, limiter: limiter, name: "wide", limit: f.lasting(1000)})
	}
	return counters
}

// crowd has each guest come many times, all at once, and returns how many calls passed.
func crowd(guard *core.Guard) int {
	var passed atomic.Int64
	together(eachComes, func(int) {
		for i := range guests {
			if guard.Check(visitBy(context.Background(), guestNamed(i))).Refusal == nil {
				passed.Add(1)
			}
		}
	})
	return int(passed.Load())
}

// closedMeanwhile closes a limiter that still has to give back, over a network that takes its time.
func (e Engine) closedMeanwhile(t *testing.T, f facts, everybody core.Rule) {
	var net network
	options := e.options(t, net.dial)
	limiter := newLimiter(t, options)
	guard := limiter.MustGuard(everybody, ruleOf("narrow", f.lasting(1)))
	for range 2 { // the second time, each guest is refused
		together(guests, func(i int) { guard.Check(visitBy(context.Background(), guestNamed(i))) })
		net.slow.Store(true)
	}
	limiter.Close()
	net.slow.Store(false)
	left := counter{t: t, limiter: limiter, name: "wide", subject: "wide", limit: f.lasting(1000)}.peek().Remaining
	if want := 1000 - guests; left > want || left < want-f.rounding {
		t.Errorf("%d left once the limiter is closed, want %d", left, want)
	}
}

// refusedTogether has a rule refuse that is used up already: no other of the call's counters comes
// to be.
func (e Engine) refusedTogether(t *testing.T, f facts) {
	options, used := e.Options(t), f.lasting(2)
	door := newDoorman(t, options, ruleOf("fresh", f.lasting(10)), ruleOf("used up", used))
	c := counter{t: t, limiter: door.limiter, name: "used up", subject: subjectOf("guest"), limit: used}
	c.mustTake(2)
	before, err := keysOf(e.clients(t), options.Prefix)
	if err != nil {
		t.Fatal(err)
	}
	for range 5 {
		if got := status(door.Check(visitBy(context.Background(), "guest"))); got != http.StatusTooManyRequests {
			t.Fatalf("status %d, want %d", got, http.StatusTooManyRequests)
		}
		if d := door.last; d.Rule != "used up" || d.Reason != core.LimitExceeded || len(d.All) != 2 || !d.All[1].Allowed {
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
