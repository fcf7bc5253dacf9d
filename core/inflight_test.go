package core_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/internal/redistest"
)

// atOnce is a rule of so many calls in flight, for each caller, whose slots count for a minute.
func atOnce(n int) core.Rule {
	return core.Rule{Name: "n", Limit: core.Limit{Max: n, Window: 60 * time.Second, Algorithm: core.Concurrency}}
}

func slots(n int) core.Limit {
	return core.Limit{Max: n, Window: time.Minute, Algorithm: core.Concurrency}
}

const me = "ip:192.0.2.1" // who calls in newView

func TestCallsInFlight(t *testing.T) {
	onBothEngines(t, func(t *testing.T, options core.Options, _ core.Source) {
		limiter := newLimiter(t, options)
		guard := newGuard(t, limiter, atOnce(2))
		serveInside(t, guard, func() {
			serveInside(t, guard, func() {
				answer := wantStatus(t, guard, newView("GET", "/"), 429)
				if wait := answer.Refusal.Wait; wait <= 0 || wait > time.Minute {
					t.Errorf("the wait is %v", wait)
				}
				wantStatus(t, guard, newView("GET", "/").from("192.0.2.2"), 200)
			})
			wantLeft(t, limiter, "n", me, slots(2), 1)
			wantServed(t, guard, newView("GET", "/"), 500, 500, 500, 500)
		})
		wantLeft(t, limiter, "n", me, slots(2), 2)
	})
}

// serveInside runs what is to happen while a call is in flight.
func serveInside(t *testing.T, guard *core.Guard, inside func()) {
	t.Helper()
	wantStatus(t, guard, newView("GET", "/"), 200).Run(func() int {
		inside()
		return 200
	})
}

func TestAPanicReleasesItsSlot(t *testing.T) {
	onBothEngines(t, func(t *testing.T, options core.Options, _ core.Source) {
		limiter := newLimiter(t, options)
		answer := wantStatus(t, newGuard(t, limiter, atOnce(1)), newView("GET", "/"), 200)
		wantPanic(t, "of the handler", func() {
			answer.Run(func() int {
				wantLeft(t, limiter, "n", me, slots(1), 0)
				panic("of the handler")
			})
		})
		wantLeft(t, limiter, "n", me, slots(1), 1)
	})
}

// wantPanic checks that a panic goes on to whoever is to hear of it.
func wantPanic(t testing.TB, what any, do func()) {
	t.Helper()
	defer func() {
		t.Helper()
		if got := recover(); got != what {
			t.Errorf("recovered %v, want %v", got, what)
		}
	}()
	do()
}

// A call that lasts many windows keeps its slot; one whose adapter never ran it loses it after one.
func TestSlotsOfLongCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limiter := newLimiter(t, core.Options{})
		rule := core.Rule{Name: "n", Limit: core.Limit{Max: 1, Window: 1 * time.Second, Algorithm: core.Concurrency}}
		guard := newGuard(t, limiter, rule)
		serveInside(t, guard, func() {
			time.Sleep(10 * time.Second)
			wantStatus(t, guard, newView("GET", "/"), 429)
		})
		forgotten := wantStatus(t, guard, newView("GET", "/"), 200)
		time.Sleep(time.Second - time.Microsecond)
		wantLeft(t, limiter, "n", me, brief, 0)
		time.Sleep(time.Microsecond)
		wantLeft(t, limiter, "n", me, brief, 1)
		forgotten.Run(func() int { return 200 })
		wantLeft(t, limiter, "n", me, brief, 1)
	})
}

// A call that holds slots of several limits renews and releases each of them, and never takes two
// of one.
func TestACallWithSeveralSlots(t *testing.T) {
	t.Parallel() // it waits for real time
	server := redistest.Start(t)
	limiter := newLimiter(t, core.Options{Redis: server.Client(t), Timeout: patient})
	short, long := core.Limit{Max: 3, Window: 1500 * time.Millisecond, Algorithm: core.Concurrency}, slots(5)
	guard := newGuard(t, limiter, core.Rule{Name: "n", Limit: core.Limit{Max: 3, Window: short.Window, Algorithm: core.Concurrency}, Also: []core.Limit{long}})
	serveInside(t, guard, func() {
		for end := time.Now().Add(short.Window * 3 / 2); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
			wantLeft(t, limiter, "n", me, short, 2)
			wantLeft(t, limiter, "n", me, long, 4)
		}
	})
	wantLeft(t, limiter, "n", me, short, 3)
	wantLeft(t, limiter, "n", me, long, 5)
}

// A call that is refused, or sent to the login, takes no slot, nor does a call that costs nothing.
// One that costs much takes one slot.
func TestWhatTakesNoSlot(t *testing.T) {
	onBothEngines(t, func(t *testing.T, options core.Options, _ core.Source) {
		options.Identify = whoSays
		limiter := newLimiter(t, options)
		login := core.Rule{Name: "login", Seconds: 60, NeedLogin: true}
		wantStatus(t, newGuard(t, limiter, atOnce(2), login), newView("GET", "/"), 401)
		wantLeft(t, limiter, "n", me, slots(2), 2)

		once := newGuard(t, limiter, atOnce(2), core.Rule{Name: "once", Seconds: 3600, MaxCount: 1})
		wantServed(t, once, newView("GET", "/"), ok, 200, 429)
		wantLeft(t, limiter, "n", me, slots(2), 2)

		free, heavy := atOnce(2), atOnce(2)
		free.Cost, heavy.Cost = cost(0), cost(500)
		for rule, left := range map[*core.Rule]int{&free: 2, &heavy: 1} {
			serveInside(t, newGuard(t, limiter, *rule), func() { wantLeft(t, limiter, "n", me, slots(2), left) })
		}
	})
}

func TestNoSlotsInsideAHandler(t *testing.T) {
	limiter := newLimiter(t, core.Options{})
	plan := core.Rule{Name: "plan", Seconds: 1, Plan: planOf("pro"), Plans: map[string]core.Limit{"pro": core.InFlight(9)}}
	for field, rule := range map[string]core.Rule{
		"Limit": atOnce(1), "Also": {Name: "also", Seconds: 1, Also: []core.Limit{core.InFlight(1)}}, `Plans["pro"]`: plan,
	} {
		_, err := limiter.Check(rule)
		wantRuleError(t, err, rule.Name, field, "")
		if !strings.Contains(err.Error(), "use Limiter.Slots") {
			t.Errorf("%v does not say what to do", err)
		}
	}
	rule := core.Rule{Name: "n", Seconds: 60, Count: func(int) bool { return true }}
	_, err := limiter.Check(core.Rule{Name: "sound", Seconds: 1}, rule)
	wantRuleError(t, err, "n", "Count", "a function")
}

func TestSlotsWithoutRedis(t *testing.T) {
	var log logbook
	server := redistest.Start(t)
	limiter := newLimiter(t, core.Options{Redis: server.Client(t), Timeout: 200 * time.Millisecond, Logger: log.logger()})
	guard := newGuard(t, limiter, atOnce(1))
	serveInside(t, guard, server.Kill)
	if log.count("level=WARN", "could not be given back", "error=") != 1 {
		t.Errorf("want one line with the cause, got: %s", log.text.String())
	}
	wantServed(t, guard, newView("GET", "/"), ok, 200, 200) // FailOpen
}
