package core_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/operate"
	"github.com/accesslimit/accesslimit/internal/leakcheck"
	"github.com/accesslimit/accesslimit/internal/limitertest"
	"github.com/accesslimit/accesslimit/internal/redistest"
	"github.com/accesslimit/accesslimit/internal/scriptclock"
)

// These are for the tests of the packages below core too.
const (
	patient     = limitertest.Patient
	mostPermits = limitertest.MostPermits
)

var (
	newLimiter        = limitertest.New
	onEveryDeployment = limitertest.OnEveryDeployment
	deadRedis         = limitertest.DeadRedis
	wantRuleError     = limitertest.WantRuleError
	eventually        = limitertest.Eventually
	noMax             = limitertest.NoMax
	awaitDryRuns      = limitertest.AwaitDryRuns
	newGuard          = limitertest.Guard
	attach            = limitertest.Attach
	ban               = limitertest.Ban
	setOverride       = limitertest.SetOverride
	errorOf           = limitertest.ErrorOf
	newView           = limitertest.NewView
	whoSays           = limitertest.WhoSays
)

type fakeView = limitertest.View

// onBothEngines runs a test in process and on a real Redis that no other test uses.
func onBothEngines(t *testing.T, test func(t *testing.T, options core.Options, source core.Source)) {
	limitertest.OnBothEngines(t, func(t *testing.T, options core.Options) {
		if options.Redis == nil {
			test(t, options, core.FromMemory)
		} else {
			test(t, options, core.FromRedis)
		}
	})
}

var background = context.Background()

func TestMain(m *testing.M) { leakcheck.Main(m) }

// clock is a test's own time, in microseconds since the epoch. It starts at the beginning of a UTC
// day.
type clock struct{ now atomic.Int64 }

const dayOne = 20_000 * 24 * time.Hour

func (c *clock) add(d time.Duration) { c.now.Add(d.Microseconds()) }

// atTestTime makes a limiter that counts in this process by a clock that the test controls.
func atTestTime(t testing.TB, options core.Options) (*core.Limiter, *clock) {
	t.Helper()
	limiter, c := newLimiter(t, options), new(clock)
	c.add(dayOne)
	core.UseClock(limiter, c.now.Load)
	return limiter, c
}

// wallClock is a test's own time on either engine, in microseconds since the epoch. It begins with a
// minute, in the year 2065: a Redis with another clock would take anything written earlier for the
// past, and drop it.
type wallClock struct{ atomic.Int64 }

const in2065 = 3_000_000_000_000_000

// onBothClocks runs a test in process and on a real Redis, with a clock of its own.
func onBothClocks(t *testing.T, test func(t *testing.T, limiter *core.Limiter, now *wallClock)) {
	t.Run("memory", func(t *testing.T) {
		limiter, now := newLimiter(t, core.Options{}), new(wallClock)
		now.Store(in2065)
		core.UseClock(limiter, now.Load)
		test(t, limiter, now)
	})
	t.Run("redis", func(t *testing.T) {
		now := new(wallClock)
		now.Store(in2065)
		client := scriptclock.NewClient(redistest.Start(t).Client(t), now.Load, scriptclock.TakeTimeAndExpire)
		limiter := newLimiter(t, core.Options{Redis: client, Timeout: patient})
		// Only Redis has this time.
		core.AskRedis(limiter)
		test(t, limiter, now)
	})
}

// A refusal strikes by the time of Redis, also that of a bucket, whose script replies without the time.
func TestARefusalStrikesByTheTimeOfRedis(t *testing.T) {
	onBothClocks(t, func(t *testing.T, limiter *core.Limiter, _ *wallClock) {
		guard := newGuard(t, limiter, change(named("n", core.PerMinute(1).Bucket(1)), func(r *core.Rule) { r.Ban = core.Ban{After: 1, For: time.Hour} }))
		if err := core.ReadMarks(limiter); err != nil {
			t.Fatal(err)
		}
		wantServed(t, guard, newView("GET", "/"), ok, 200, 429)
		eventually(t, "the subject is banned", func() bool {
			d, err := limiter.MustCounter("n", core.PerHour(9)).Peek(background, me)
			return err == nil && d.Reason == core.Banned
		})
	})
}

// These tests of Explain set the clocks that count, which only tests of core can.

// Waits are told by the clock that counts, also if nothing but a block decides.
func TestExplainTellsTheTimeThatCounts(t *testing.T) {
	onBothClocks(t, func(t *testing.T, limiter *core.Limiter, now *wallClock) {
		rule := core.Rule{
			Name: "n", Limit: core.PerDay(1),
			Plans: map[string]core.Limit{"free": core.Unlimited}, Plan: planOf("free"),
		}
		attach(t, limiter, rule)
		until := time.UnixMicro(now.Load()).Add(time.Hour).UTC()
		operator{t, limiter, rule.Name, rule.Limit, nil}.block(me, until)
		x, err := operate.New(limiter).ExplainView(newView("GET", "/"))
		if err != nil || x.Reason != core.Blocked || x.RetryAfter > time.Hour || x.RetryAfter < time.Hour-patient {
			t.Errorf("explained at %v as %s for %v, %v; the block ends at %v", x.Time, x.Reason, x.RetryAfter, err, until)
		}
		if y, err := operate.New(limiter).Inspect(background, me); err != nil || y.Time.Sub(time.UnixMicro(now.Load())).Abs() > patient {
			t.Errorf("inspected at %v, %v", y.Time, err)
		}
	})
}
