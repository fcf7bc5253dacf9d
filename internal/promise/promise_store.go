package promise

import (
	"context"
	"errors"
	"net/http"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/internal/redistest"
)

// StoreFailureIsNoRefusal: if the servers cannot be reached, or answer with an error, a direct call
// returns ErrStore and no decision, and each rule follows its own policy, with a reason of its own.
// If one rule refuses, the call is refused. When the failure is over, everything is as before.
//
// In this process nothing can fail.
func StoreFailureIsNoRefusal(t *testing.T, e Engine) {
	if e.inProcess() {
		return
	}
	t.Run("out of reach", func(t *testing.T) {
		var net network
		options := e.options(t, net.dial)
		e.failsAndMends(t, options, func() { net.cut.Store(true) }, func() { net.cut.Store(false) })
	})
	t.Run("an error", func(t *testing.T) {
		options := e.Options(t)
		e.failsAndMends(t, options, func() { e.spoil(t, options.Prefix) }, func() { e.wipe(t, options.Prefix) })
	})
}

// failsAndMends makes calls before a failure of the store, during it, and afterwards.
func (e Engine) failsAndMends(t *testing.T, options core.Options, fail, mend func()) {
	limit := core.PerDay(100)
	open, closed := ruleOf("open", limit), ruleOf("closed", limit)
	closed.OnStoreError = core.FailClosed
	guards := map[*watchedGuard]core.Reason{
		watchGuard(t, options, open):         core.StoreFailOpen,
		watchGuard(t, options, closed):       core.StoreFailClosed,
		watchGuard(t, options, open, closed): core.StoreFailClosed,
		watchGuard(t, options, closed, open): core.StoreFailClosed,
	}
	c := counter{t: t, limiter: newLimiter(t, options), name: "open", subject: subjectOf("caller"), limit: limit}
	c.mustTake(1)
	c.name = "closed"
	c.mustTake(1)

	fail()
	d, err := c.limiter.MustCounter(c.name, limit).Allow(context.Background(), c.subject)
	if !errors.Is(err, core.ErrStore) || err.Error() == core.ErrStore.Error() || !isZero(d) {
		t.Errorf("Allow: %+v, %v; want %v, with its cause", d, err, core.ErrStore)
	}
	if _, err := c.limiter.MustCounter(c.name, limit).Peek(context.Background(), c.subject); !errors.Is(err, core.ErrStore) {
		t.Errorf("Peek: %v, want %v", err, core.ErrStore)
	}
	for guard, reason := range guards {
		guard.wantPolicy(t, reason)
	}

	mend()
	if !redistest.WaitUntil(func() bool {
		_, err := c.limiter.MustCounter(c.name, limit).Peek(context.Background(), c.subject)
		return err == nil
	}, patient) {
		t.Fatal("the store is well again, but calls still fail")
	}
	for guard := range guards {
		if got := status(guard.Check(callBy(context.Background(), "caller"))); got != http.StatusOK || guard.last.Source != core.FromRedis {
			t.Errorf("status %d when the store is well again, by %+v", got, guard.last)
		}
	}
}

// wantPolicy checks that a guard follows the policies of its rules.
func (d *watchedGuard) wantPolicy(t *testing.T, reason core.Reason) {
	t.Helper()
	want := http.StatusServiceUnavailable
	if reason == core.StoreFailOpen {
		want = http.StatusOK
	}
	got := status(d.Check(callBy(context.Background(), "caller")))
	if got != want || d.last.Reason != reason || d.last.Allowed != (want == http.StatusOK) || d.last.Source != core.FromNobody {
		t.Errorf("status %d, want %d because of %s: %+v", got, want, reason, d.last)
	}
}

// spoil replaces every counter by a value that no script expects.
func (e Engine) spoil(t *testing.T, prefix string) {
	e.wipeAnd(t, prefix, func(server *redis.Client, key string) error {
		return server.Do(context.Background(), "xadd", key, "*", "what", "is this").Err()
	})
}

// wipe removes every counter.
func (e Engine) wipe(t *testing.T, prefix string) {
	e.wipeAnd(t, prefix, func(*redis.Client, string) error { return nil })
}

func (e Engine) wipeAnd(t *testing.T, prefix string, then func(server *redis.Client, key string) error) {
	t.Helper()
	for _, server := range e.clients(t) {
		keys, err := keysOf([]*redis.Client{server}, prefix)
		for key := range keys {
			err = errors.Join(err, server.Del(context.Background(), key).Err(), then(server, key))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}
