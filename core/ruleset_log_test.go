package core_test

import (
	"context"
	"log/slog"
	"runtime"
	"sync/atomic"
	"testing"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/internal/redistest"
)

// caller is the handler of a log that calls the set and its Limiter after each line.
type caller struct {
	slog.Handler
	limiter *core.Limiter
	set     atomic.Pointer[core.RuleSet]
	lines   atomic.Int32
}

func (c *caller) Enabled(context.Context, slog.Level) bool { return true }

func (c *caller) Handle(context.Context, slog.Record) error {
	if set := c.set.Load(); set != nil {
		set.MustGuard("api")
		c.limiter.Stats()
		set.ReportError(nil)
		c.lines.Add(1)
	}
	return nil
}

// The handler of a log may call the set, also about an audit that fails after the Limiter was
// closed: it is written before Replace returns then.
func TestTheLogMayCallTheSet(t *testing.T) {
	for name, closed := range map[string]bool{"open": false, "closed": true} {
		t.Run(name, func(t *testing.T) {
			server := redistest.Start(t)
			c := &caller{Handler: slog.DiscardHandler}
			c.limiter = newLimiter(t, core.Options{Redis: server.Client(t), Logger: slog.New(c)})
			set := newRuleSet(t, c.limiter, named("api", core.PerHour(1)))
			guard := set.MustGuard("api")
			defer runtime.KeepAlive(guard)
			if closed {
				c.limiter.Close()
			}
			c.set.Store(set)
			server.Kill()
			if set.Replace("2") == nil {
				t.Error("the name of the guard is missing")
			}
			if err := set.Replace("3", named("api", core.PerHour(2))); err != nil {
				t.Error(err)
			}
			c.limiter.Close()
			if c.lines.Load() < 3 {
				t.Errorf("%d lines", c.lines.Load())
			}
		})
	}
}
