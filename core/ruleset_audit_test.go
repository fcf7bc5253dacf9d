package core_test

import (
	"context"
	"log/slog"
	"runtime"
	"slices"
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

// caller is the handler of a log that calls the set and its Limiter with each line.
type caller struct {
	slog.Handler
	limiter *core.Limiter
	set     *core.RuleSet
	lines   int
}

func (c *caller) Enabled(context.Context, slog.Level) bool { return c.set != nil }

func (c *caller) Handle(context.Context, slog.Record) error {
	c.set.MustGuard("api")
	c.limiter.Stats()
	c.set.ReportError(nil)
	c.lines++
	return nil
}

// The handler of a log may call the set, also about an audit that fails after the Limiter was closed:
// it is written before Replace returns then.
func TestTheLogOfAnAuditMayCallTheSet(t *testing.T) {
	c := new(caller)
	options := deadRedis(t)
	options.Logger = slog.New(c)
	c.limiter = newLimiter(t, options)
	set := newRuleSet(t, c.limiter, named("api", core.PerHour(1)))
	guard := set.MustGuard("api")
	c.limiter.Close()
	c.set = set
	if err := set.Replace("2", named("api", core.PerHour(2))); err != nil {
		t.Error(err)
	}
	if c.lines < 2 {
		t.Errorf("%d lines", c.lines)
	}
	runtime.KeepAlive(guard)
}
