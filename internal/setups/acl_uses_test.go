package setups_test

import (
	"encoding/binary"
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/operate"
	"github.com/accesslimit/accesslimit/internal/redistest"
	"github.com/accesslimit/accesslimit/nethttplimit"
)

// states puts into Redis what a counter would hold if the server's clock had been set since.
type states struct {
	at func(key string) *redis.Client
}

// The ends of the keys of a log and of slots for an hour.
const (
	futureLog   = "sl3:3600000000"
	futureSlots = "cc1:3600000000"
)

// fromTheFuture writes a SlidingLog and a Concurrency of a subject, for an hour, whose newest entries
// are an hour in the future.
func (s states) fromTheFuture(t *testing.T, subject string) {
	t.Helper()
	later := time.Now().Add(time.Hour).UnixMicro()
	s.logged(t, subject, "future", later)
	of := s.at("{" + subject + "}")
	if err := of.ZAdd(background, "accesslimit:{"+subject+"}:future:"+futureSlots, redis.Z{Score: float64(later), Member: "holder"}).Err(); err != nil {
		t.Fatal(err)
	}
}

// logged writes a SlidingLog of a subject, for an hour, with entries of these times.
func (s states) logged(t *testing.T, subject, name string, times ...int64) {
	t.Helper()
	of := s.at("{" + subject + "}")
	for i, at := range times {
		number := binary.BigEndian.AppendUint64(nil, uint64(at)+2*uint64(i))
		if err := of.ZAdd(background, "accesslimit:{"+subject+"}:"+name+":"+futureLog, redis.Z{Score: float64(at), Member: number[1:]}).Err(); err != nil {
			t.Fatal(err)
		}
	}
}

// everything uses the public API, and collects the errors.
type everything struct {
	t       *testing.T
	limiter *core.Limiter
	of      string // part of every subject
	mu      sync.Mutex
	wrong   []error
}

// errUnseen stands for an error of Redis that only the log shows.
var errUnseen = fmt.Errorf("%w: something was left undone", core.ErrStore)

// note keeps an error.
func (e *everything) note(err error) {
	if err != nil {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.wrong = append(e.wrong, err)
	}
}

// passes notes why a call was not allowed by Redis, if it was not.
func (e *everything) passes(d core.Decision, err error) core.Decision {
	if err == nil && (!d.Allowed || d.Source != core.FromRedis) {
		e.t.Errorf("%+v, want it allowed by Redis", d)
	}
	e.note(err)
	return d
}

// useEverything uses all of the public API that asks Redis, through a client, with counters of its
// own, and returns the errors.
func useEverything(t *testing.T, client redis.UniversalClient, s states, of string) []error {
	t.Helper()
	e := &everything{t: t, limiter: newLimiter(t, core.Options{Redis: client, Timeout: patient}), of: of}
	for _, limit := range []core.Limit{
		core.PerHour(8), core.PerHour(8).Bucket(8), core.PerCalendarDay(8, "Europe/Berlin"), core.PerSecond(1_000_000),
		{Max: 8, Window: time.Hour, Algorithm: core.SlidingLog}, {Max: 8, Window: time.Hour, Algorithm: core.FixedWindow},
		{Max: 8, Window: 30 * 24 * time.Hour, Algorithm: core.CalendarWindow},
	} {
		e.count(limit)
	}
	e.bucket()
	e.bills()
	e.log(s)
	e.slots()
	e.bans()
	e.overrides()
	e.rules()
	return e.wrong
}

// count uses a limit by direct calls, alone and from many goroutines at once, up to its end and
// back.
func (e *everything) count(limit core.Limit) {
	subject := "count" + e.of
	counter := e.limiter.MustCounter("name", limit)
	e.passes(counter.Peek(background, subject))
	e.passes(counter.Allow(background, subject))
	d := e.passes(counter.AllowN(background, subject, 2))
	if d.Allowed {
		e.note(e.limiter.Refund(background, d, 1))
	}
	var all sync.WaitGroup
	for range 32 {
		all.Go(func() {
			_, err := counter.Allow(background, subject)
			e.note(err)
		})
	}
	all.Wait()
	e.note(errorOf(counter.Reset(background, subject)))
}

// bucket uses the features that only buckets have.
func (e *everything) bucket() {
	limit := core.PerHour(3600).Bucket(2)
	e.passes(e.limiter.MustPacer("bucket", limit).Acquire(background, "bucket"+e.of, 1))
	e.passes(e.limiter.MustPacer("bucket", limit).TryAcquire(background, "bucket"+e.of, 1, time.Second))
	if d := e.passes(e.limiter.MustPacer("bucket", limit).Reserve(background, "bucket"+e.of, 2)); d.Allowed {
		e.note(e.limiter.Refund(background, d, 2))
	}
}

// bills uses costs that are known afterwards.
func (e *everything) bills() {
	tokens := e.limiter.MustCounter("tokens", core.PerHour(8), core.PerHour(3600).Bucket(8))
	subject := "bill" + e.of
	_, err := tokens.Charge(background, subject, 1)
	e.note(err)
	for _, used := range []int{1, 5} {
		bill, d, err := tokens.Open(background, subject, 2)
		if e.passes(d, err); bill != nil {
			e.note(bill.Add(background, 1))
			e.note(bill.Settle(background, used))
		}
	}
}

// log uses the features that only a SlidingLog has.
func (e *everything) log(s states) {
	limit := core.Limit{Max: 3, Window: time.Hour, Algorithm: core.SlidingLog}
	subject := "log" + e.of
	var taken [3]core.Decision
	for i := range taken {
		taken[i] = e.passes(e.limiter.MustLog("log", limit).AllowN(background, subject, 1, fmt.Sprint("note ", i)))
	}
	records, err := e.limiter.MustLog("log", limit).Records(background, subject)
	if err == nil && taken[2].Allowed && len(records) != 3 {
		e.t.Errorf("%d records of 3 calls", len(records))
	}
	e.note(err)
	for _, d := range taken[1:] { // first from the middle, then the last
		if d.Allowed {
			e.note(e.limiter.Refund(background, d, 1))
		}
	}
	now := time.Now()
	s.logged(e.t, subject, "past", now.Add(-2*time.Hour).UnixMicro(), now.UnixMicro())
	e.passes(e.limiter.MustCounter("past", limit).Allow(background, subject)) // forgets the first
	slots := core.Limit{Max: 3, Window: time.Hour, Algorithm: core.Concurrency}
	s.fromTheFuture(e.t, subject)
	_, err = e.limiter.MustCounter("future", limit).Allow(background, subject)
	e.note(err)
	release, _, err := slotsOf(e.limiter, "future", slots).Hold(background, subject)
	e.note(err)
	release()
}

// slots uses Concurrency up to its end.
func (e *everything) slots() {
	limit := core.Limit{Max: 2, Window: time.Hour, Algorithm: core.Concurrency}
	for range 3 {
		release, _, err := slotsOf(e.limiter, "slots", limit).Hold(background, "slots"+e.of)
		e.note(err)
		defer release()
	}
	_, err := slotsOf(e.limiter, "slots", limit).Peek(background, "slots"+e.of)
	e.note(err)
	release, _, err := slotsOf(e.limiter, "released", limit).Hold(background, "slots"+e.of)
	e.note(err)
	release()
	if d, err2 := slotsOf(e.limiter, "released", limit).Peek(background, "slots"+e.of); err == nil && err2 == nil && d.Remaining != 2 {
		e.note(errUnseen)
	}
}

// bans uses bans as an operator does.
func (e *everything) bans() {
	_, err := operate.New(e.limiter).Ban(background, "banned", "banned"+e.of, time.Hour)
	e.note(err)
	_, err = operate.New(e.limiter).Unban(background, "banned", "banned"+e.of)
	e.note(err)
}

// overrides uses overrides as an operator does.
func (e *everything) overrides() {
	own, subject := overrides(e.t, e.limiter, "overridden"), "overridden"+e.of
	e.note(own.Set(background, subject, operate.Override{Limits: []core.Limit{core.PerHour(5)}}))
	_, _, err := own.Get(background, subject)
	e.note(err)
	_, _, err = own.List(background, "", 10)
	e.note(err)
	e.note(errorOf(own.Remove(background, subject)))
}

// rules uses the features that only rules have: several counters of one subject and of several
// subjects, refunds by outcome, and leases.
func (e *everything) rules() {
	subject := func(s string) core.KeyFunc {
		return func(core.Request) (string, error) { return s + e.of, nil }
	}
	rule := func(name string, a core.Algorithm) core.Rule {
		return core.Rule{Name: name, Limit: core.Limit{Max: 100, Window: time.Hour, Algorithm: a}, Key: subject("rules"), OnStoreError: core.FailClosed}
	}
	several := rule("several", core.SlidingWindow)
	several.Also, several.Ban = []core.Limit{core.PerDay(2), core.PerDay(3).Bucket(3)}, core.Ban{After: 1, For: time.Hour}
	elsewhere, flight, back := rule("elsewhere", core.SlidingWindow), rule("flight", core.Concurrency), rule("back", core.SlidingLog)
	elsewhere.Key, back.Count = subject("other rules"), func(int) bool { return false }
	leased := rule("leased", core.FixedWindow)
	leased.Lease = 10
	for _, rules := range [][]core.Rule{{several, elsewhere}, {flight, back}, {leased}} {
		guard := e.limiter.MustGuard(rules...)
		handler := nethttplimit.With(guard)(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
		for range 4 {
			w := httptest.NewRecorder()
			if handler.ServeHTTP(w, httptest.NewRequest("GET", "/", nil)); w.Code == http.StatusServiceUnavailable {
				e.note(errUnseen)
			}
		}
		_, err := operate.New(e.limiter).Inspect(background, "rules"+e.of)
		e.note(err)
		runtime.KeepAlive(guard)
	}
}

// renewsSlots holds a slot until it is renewed, which an administrator can see.
func renewsSlots(t *testing.T, client redis.UniversalClient, admin *redis.Client) {
	t.Helper()
	limiter := newLimiter(t, core.Options{Redis: client, Timeout: patient})
	limit := core.Limit{Max: 1, Window: time.Second, Algorithm: core.Concurrency}
	slots := slotsOf(limiter, "renewed", limit)
	lasts := func() float64 {
		holders, err := admin.ZRangeWithScores(background, "accesslimit:{subject}:renewed:cc1:1000000", 0, -1).Result()
		if err != nil || len(holders) != 1 {
			t.Fatalf("the slots are %v, %v", holders, err)
		}
		return holders[0].Score
	}
	release, d, err := slots.Hold(background, "subject")
	if err != nil || !d.Allowed {
		t.Fatalf("%+v, %v", d, err)
	}
	taken := lasts()
	if !redistest.WaitUntil(func() bool { return lasts() > taken }, patient) {
		t.Error("the slot is not renewed")
	}
	release()
	if d, err := slots.Peek(background, "subject"); err != nil || d.Remaining != 1 {
		t.Errorf("%+v, %v; want the slot free", d, err)
	}
}
