package promise

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/accesslimit/accesslimit/core"
)

// ChargedAtMostOnce: a call is charged once if it is answered, and at most once if it is not,
// whatever go-redis's options are. By default go-redis sends a command up to four times.
func ChargedAtMostOnce(t *testing.T, e Engine) {
	eachAlgorithm(t, func(t *testing.T, f facts) {
		t.Run("answered", func(t *testing.T) { chargedOnce(t, e, f) })
		if e.inProcess() {
			return // there is no answer to be lost
		}
		t.Run("the answer is lost", func(t *testing.T) { chargedWithoutAnswer(t, e, f) })
	})
	if !e.inProcess() {
		t.Run("servers stand still", func(t *testing.T) { chargedLate(t, e) })
	}
}

// chargedOnce checks calls that are answered, even by servers that keep forgetting their scripts.
func chargedOnce(t *testing.T, e Engine, f facts) {
	servers := e.clients(t)
	c := counter{t: t, limiter: e.limiters(t, 1)[0], name: "name", subject: "subject", limit: f.lasting(100)}
	for i := range 10 {
		if d := c.mustTake(3); d.Remaining != 100-3*(i+1) {
			t.Fatalf("call %d: %+v", i, d)
		}
		for _, server := range servers {
			server.ScriptFlush(context.Background())
		}
	}
	c.wantLeft(70)
}

// chargedWithoutAnswer loses the replies of calls that were executed, but fewer than open a
// breaker.
func chargedWithoutAnswer(t *testing.T, e Engine, f facts) {
	var net network
	options := e.options(t, net.dial)
	limiter := newLimiter(t, options)
	c := counter{t: t, limiter: limiter, name: "name", subject: "subject", limit: f.lasting(100)}
	c.mustTake(1) // so that the servers know the script
	net.losesReplies.Store(true)
	left := 100 - 1
	for range 4 {
		d, err := limiter.MustCounter(c.name, c.limit).AllowN(context.Background(), c.subject, 4)
		var failed *core.StoreError
		if !errors.As(err, &failed) || !isZero(d) {
			t.Fatalf("%+v, %v; want %v", d, err, core.ErrStore)
		}
		if failed.Class != core.StoreBreakerOpen { // work in the background may have lost replies too
			left -= 4
		}
	}
	net.losesReplies.Store(false)
	c.limiter = newLimiter(t, options) // the breaker of the other one may be open
	c.wantLeft(left)
}

// chargedLate makes calls that give up while the servers are suspended. Commands that the servers
// execute later must charge each call at most once.
func chargedLate(t *testing.T, e Engine) {
	options := e.Options(t)
	options.Timeout = storeTimeout
	warm := options
	warm.Timeout = patient
	hasty, limit := newLimiter(t, options), core.PerDay(100)
	c := counter{t: t, limiter: newLimiter(t, warm), name: "name", limit: limit}
	const callers = 32
	subject := func(i int) string { return fmt.Sprint("subject", i) }
	together(callers, func(i int) { c.of(subject(i)).take(1) })
	e.stop()
	together(callers, func(i int) {
		if _, err := hasty.MustCounter("name", limit).Allow(context.Background(), subject(i)); !errors.Is(err, core.ErrStore) {
			t.Errorf("%v, want %v", err, core.ErrStore)
		}
	})
	e.resume(t, options.Redis)
	options.Redis, options.Timeout = e.connect(t, nil, 0), patient
	c.limiter = newLimiter(t, options)
	for i := range callers {
		if left := c.of(subject(i)).peek().Remaining; left != 98 && left != 99 {
			t.Errorf("%d charged of one call that was answered, and one that was not", 100-left)
		}
	}
}
