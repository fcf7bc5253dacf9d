package core_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/internal/tally"
	"github.com/accesslimit/accesslimit/core/operate"
)

// lentView is a call whose strings are all lent.
func lentView(l *lender) *fakeView {
	v := newView(l.lend("GET"), l.lend("/a/b")).As(l.lend("alice"))
	return v.With("X-Real-Ip", l.lend("203.0.113.7")).With("X-Note", l.lend("phone")).With("X-Zone", l.lend("Asia/Tokyo")).
		With("Authorization", l.lend("Bearer token")).From("10.0.0.1")
}

func lentHeader(name string) func(core.Request) string {
	return func(r core.Request) string { return r.Header(name)[0] }
}

// borrower is a limiter to which everything is lent.
type borrower struct {
	*testing.T
	limiter *core.Limiter
	lent    *lender
	heard   decisions
	mu      sync.Mutex
	events  []core.Event
	seen    []context.Context // by handlers
}

func newBorrower(t *testing.T, options core.Options) *borrower {
	b := &borrower{T: t, lent: newLender()}
	options.Identify = func(r core.Request) (string, error) { return r.Value("user").(string), nil }
	options.OnDecision = func(ctx context.Context, e core.Event) {
		b.heard.note(ctx, e)
		b.mu.Lock()
		defer b.mu.Unlock()
		b.events = append(b.events, e)
	}
	options.Expose, options.Prefix = true, b.lent.lend("lent")
	options.ClientIP = core.ClientIP{TrustedProxies: []string{b.lent.lend("10.0.0.0/8")}, Header: b.lent.lend("X-Real-Ip")}
	b.limiter = newLimiter(t, options)
	b.check("New")
	return b
}

// check takes all strings back, of which none may be kept.
func (b *borrower) check(at string) {
	b.Helper()
	b.lent.takeBack()
	awaitDryRuns(b, b.limiter)
	if found := b.lent.kept(b.limiter, b.events, b.seen, core.Kept(b.limiter)); len(found) > 0 {
		b.Fatalf("%s: lent, and kept in\n%s", at, strings.Join(found, "\n"))
	}
	for _, d := range b.heard.heard {
		if text := fmt.Sprintf("%+v", d); strings.Contains(text, "~") {
			b.Errorf("%s: OnDecision received %s", at, text)
		}
	}
}

// A framework may overwrite the strings that it lent as soon as a call is over. The core keeps none
// of them, however they reached it.
func TestNothingLentIsKept(t *testing.T) {
	onBothEngines(t, func(t *testing.T, options core.Options, _ core.Source) {
		b := newBorrower(t, options)
		b.callGuard()
		b.callLeasedGuard()
		b.callChecks()
		b.callHandles()
		b.operate()
		b.callOtherHandles()
	})
}

func (b *borrower) callGuard() {
	guard := newGuard(b, b.limiter,
		core.Rule{
			Name: b.lent.lend("rule"), Seconds: 60, MaxCount: 2, Message: b.lent.lend("No."), Paths: []string{b.lent.lend("/a/**")},
			Except: []string{b.lent.lend("/b")}, Methods: []string{b.lent.lend("GET")},
			Also: []core.Limit{core.PerCalendarDay(9, b.lent.lend("Europe/Berlin"))}, Ban: core.Ban{After: 1, For: time.Hour},
			Key: func(r core.Request) (string, error) { return r.Header("X-Note")[0], nil },
		},
		core.Rule{
			Limit:     core.PerCalendarMonth(5, b.lent.lend("Europe/Paris")),
			NeedLogin: true,
			LimitFor:  func(r core.Request) (core.Limit, error) { return core.PerCalendarDay(4, r.Header("X-Zone")[0]), nil },
		},
		core.Rule{Name: "log", Limit: core.PerMinute(5).Log(), Note: lentHeader("X-Note")},
		core.Rule{Name: "slot", Limit: core.Limit{Max: 5, Window: 60 * time.Second, Algorithm: core.Concurrency}},
		core.Rule{Name: "counted", Seconds: 60, Count: func(int) bool { return false }},
		core.Rule{Name: "dry", Seconds: 60, MaxCount: 1, Mode: core.DryRun, Key: core.ByHeader("X-Note"), Count: func(int) bool { return false }},
		core.Rule{Name: "dry log", Limit: core.PerMinute(5).Log(), Note: lentHeader("X-Note"), Mode: core.DryRun},
	)
	b.check("Guard")
	for range 3 { // the third is refused
		answer := guard.Check(lentView(b.lent))
		answer.Run(func() int { b.seen = append(b.seen, answer.Context); return ok })
		b.check("Check")
	}
}

func (b *borrower) callLeasedGuard() {
	leased := newGuard(b, b.limiter, core.Rule{Name: "leased", Seconds: 60, MaxCount: 3200, Lease: 100, Key: func(r core.Request) (string, error) {
		return r.Header("X-Note")[0], nil
	}})
	for range 3 {
		leased.Check(lentView(b.lent)).Run(func() int { return ok })
		b.check("Check with a lease")
	}
}

func (b *borrower) callChecks() {
	for _, seconds := range []int{60, -1} {
		made, err := b.limiter.Check(core.Rule{
			Name: b.lent.lend(fmt.Sprint("inside", seconds)), Seconds: seconds, Message: b.lent.lend("No."), Also: []core.Limit{core.PerCalendarDay(9, b.lent.lend("Asia/Kabul"))},
			Plan: planOf("pro"), Plans: map[string]core.Limit{b.lent.lend("pro"): core.PerCalendarDay(8, b.lent.lend("Asia/Kabul"))},
		})
		if err == nil {
			made.Allow(lentView(b.lent), b.lent.lend("account:carol"))
		}
		b.check("Check")
	}
}

// callHandles makes direct calls, each in a time zone of its own.
func (b *borrower) callHandles() {
	zones := []string{"Asia/Dubai", "Asia/Dhaka", "Asia/Seoul", "Asia/Karachi", "Asia/Almaty"}
	limit := func() core.Limit {
		l := core.PerCalendarDay(1, b.lent.lend(zones[0]))
		zones = zones[1:]
		return l
	}
	name, subject := func() string { return b.lent.lend("direct") }, func() string { return b.lent.lend("user:alice") }
	_, _ = peek(b.limiter, background, name(), subject(), limit())
	b.check("Peek")
	_, _ = b.limiter.MustCounter(name(), limit()).AllowN(background, subject(), 1)
	b.check("AllowN")
	for range 2 {
		_, _ = b.limiter.MustCounter(name(), core.PerCalendarDay(1, b.lent.lend("Asia/Kuwait"))).Allow(background, subject())
		b.check("Allow")
	}
	_, _ = b.limiter.MustCounter(b.lent.lend("none"), core.Unlimited).Allow(background, subject())
	b.check("Allow of Unlimited")
	_, _ = resetOf(b.limiter, background, name(), subject(), limit())
	b.check("Reset")
}

func (b *borrower) operate() {
	subject := func() string { return b.lent.lend("user:alice") }
	for _, rule := range []string{"rule", "elsewhere"} {
		_, _ = operate.New(b.limiter).Ban(operate.WithActor(background, b.lent.lend("bob"), b.lent.lend("scraper")), b.lent.lend(rule), subject(), time.Hour)
		b.check("Ban")
	}
	_, _, _ = operate.New(b.limiter).Bans(background, b.lent.lend("rule"), b.lent.lend("user:"), 10)
	b.check("Bans")
	_, _ = operate.New(b.limiter).Unban(background, b.lent.lend("rule"), subject())
	b.check("Unban")
	newGuard(b, b.limiter, core.Rule{Name: b.lent.lend("overridden"), Seconds: 60})
	overrides, err := operate.New(b.limiter).Overrides(b.lent.lend("overridden"))
	if err != nil {
		b.Fatal(err)
	}
	b.check("Overrides")
	actor := operate.WithActor(background, b.lent.lend("bob"), b.lent.lend("ticket 7"))
	_ = overrides.Set(actor, subject(), operate.Override{Limits: []core.Limit{core.PerMinute(5)}, Note: b.lent.lend("contract 17")})
	b.check("Set")
	_, _, _ = overrides.Get(background, subject())
	_, _, _ = overrides.List(background, b.lent.lend("user:"), 10)
	b.check("Get and List")
	_, _ = overrides.Remove(actor, subject())
	b.check("Remove")
}

func (b *borrower) callOtherHandles() {
	subject := func() string { return b.lent.lend("user:alice") }
	noted := core.Limit{Max: 3, Window: time.Hour, Algorithm: core.SlidingLog}
	d, err := b.limiter.MustLog(b.lent.lend("noted"), noted).AllowN(background, subject(), 2, b.lent.lend("phone"))
	if err != nil {
		b.Fatal(err)
	}
	_ = b.limiter.Refund(background, d, 1)
	b.check("AllowNoted and Refund")
	_, _ = b.limiter.MustLog(b.lent.lend("noted"), noted).Records(background, subject())
	b.check("Records")
	release, _, _ := b.limiter.MustSlots(b.lent.lend("held"), 1).Hold(background, subject())
	b.check("Hold")
	release()
	b.check("release")
	bucket := core.PerHour(3).Bucket(2)
	_, _ = b.limiter.MustPacer(b.lent.lend("turn"), bucket).Reserve(background, subject(), 3)
	b.check("Reserve")
	ctx, leave := context.WithTimeout(background, time.Millisecond)
	defer leave()
	_, _ = b.limiter.MustPacer(b.lent.lend("turn"), bucket).Acquire(ctx, subject(), 1)
	b.check("Acquire")
	for i := range tally.MaxHandles + 1 { // names beyond those that Stats lists separately
		_, _ = peek(b.limiter, background, fmt.Sprint("name", i), "s", core.PerHour(1))
	}
	_, _ = b.limiter.MustCounter(b.lent.lend("beyond"), core.PerCalendarDay(1, b.lent.lend("Asia/Baku"))).Allow(background, subject())
	b.check("Allow of many names")
}

// If a caller leaves Acquire, its reservation is given back in the background, when its strings are
// lent to somebody else.
func TestLeavingAcquireGivesBackUnderItsOwnName(t *testing.T) {
	onBothEngines(t, func(t *testing.T, options core.Options, _ core.Source) {
		ctx, leave := context.WithCancel(background)
		options.OnDecision = func(_ context.Context, e core.Event) {
			d := e.Decision

			if d.Wait > 0 {
				leave()
			}
		}
		limiter, lent, limit := newLimiter(t, options), newLender(), core.PerHour(60).Bucket(1)
		for _, want := range []error{nil, context.Canceled} {
			if _, err := limiter.MustPacer(lent.lend("turn"), limit).Acquire(ctx, lent.lend("user:alice"), 1); !errors.Is(err, want) {
				t.Fatalf("%v, want %v", err, want)
			}
			lent.takeBack()
		}
		eventually(t, "the turn is given back", func() bool {
			d, err := peek(limiter, background, "turn", "user:alice", limit)
			return err == nil && d.RetryAfter <= time.Minute
		})
	})
}
