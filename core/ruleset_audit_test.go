package core_test

import (
	"context"
	"log/slog"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/operate"
	"github.com/accesslimit/accesslimit/internal/redistest"
)

// Each version of a set that guards follow is in the audit, once for all processes. A set without
// guards decides nothing, and leaves no entry.
func TestVersionsOfASetAreAudited(t *testing.T) {
	client := redistest.Start(t).Client(t)
	rule := core.Rule{Name: "api", Limit: core.PerHour(5)}
	for range 2 {
		limiter := newLimiter(t, core.Options{Redis: client, Timeout: patient})
		var sets [2]*core.RuleSet
		for i := range sets {
			var err error
			if sets[i], err = limiter.RuleSet(); err != nil {
				t.Fatal(err)
			}
			if err := sets[i].Replace([]string{"1", "compared with it"}[i], rule); err != nil {
				t.Fatal(err)
			}
		}
		guards := []*core.Guard{sets[0].MustGuard("api"), sets[0].MustGuard("api", "api")}
		for _, version := range []string{"2", "2", "3"} {
			if err := sets[0].Replace(version, rule); err != nil {
				t.Fatal(err)
			}
		}
		core.AwaitAudit(sets[0])
		runtime.KeepAlive(guards)
	}
	want := []operate.AuditEntry{{Act: "rules", After: "1"}, {Act: "rules", Before: "1", After: "2"}, {Act: "rules", Before: "2", After: "3"}}
	got, err := operate.New(newLimiter(t, core.Options{Redis: client, Timeout: patient})).Audit(background, "", 10)
	if err != nil {
		t.Fatal(err)
	}
	slices.Reverse(got)
	for i := range got {
		got[i].ID, got[i].Time = "", time.Time{}
	}
	if !slices.Equal(got, want) {
		t.Errorf("the audit is %+v, want %+v", got, want)
	}
}

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
