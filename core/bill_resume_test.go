package core_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"math"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/internal/redistest"
)

// A bill stays on the counters where it was opened, whatever its subject's limits are later, and
// whatever subject it is.
func TestABillStaysWhereItWasOpened(t *testing.T) {
	onBothEngines(t, func(t *testing.T, options core.Options, _ core.Source) {
		limiter := newLimiter(t, options)
		tokens := limiter.MustCounter("tokens", core.PerHour(10), core.PerDay(100))
		pro := limiter.MustCounter("tokens", core.PerMinute(50).Bucket(50))
		options.Prefix += "other:"
		elsewhere := newLimiter(t, options).MustCounter("tokens", core.PerHour(10))
		for _, subject := range []string{"s", "}{: \x00\xff%", "2001:db8::1"} {
			bill, _, err := tokens.With(core.PerHour(20)).Open(background, subject, 15)
			if err != nil {
				t.Fatal(err)
			}
			resumed, err := pro.Resume(bill.Token())
			if err != nil {
				t.Fatal(err)
			}
			if resumed.Token() != bill.Token() {
				t.Error("the token changes")
			}
			if err := resumed.Settle(background, 2); err != nil {
				t.Error(err)
			}
			wantLeft(t, limiter, "tokens", subject, core.PerHour(10), 8)
			wantLeft(t, limiter, "tokens", subject, core.PerDay(100), 98)
			wantLeft(t, limiter, "tokens", subject, core.PerMinute(50).Bucket(50), 50)
			if err := bill.Cancel(background); !errors.Is(err, core.ErrBillSettled) {
				t.Errorf("settled elsewhere: %v", err)
			}
			resumed, err = elsewhere.Resume(bill.Token())
			if err := errors.Join(err, resumed.Settle(background, 2)); !errors.Is(err, core.ErrBillUnknown) {
				t.Errorf("with another prefix: %v", err)
			}
		}
	})
}

// A call that the store does not count has nothing to settle.
func TestBillsThatAreNotCounted(t *testing.T) {
	b := billing{t, newLimiter(t, core.Options{}).MustCounter("tokens", core.Unlimited)}
	b.is(b.open(5).Settle(background, 50), nil)

	b.Counter = newLimiter(t, deadRedis(t)).MustCounter("tokens", core.PerHour(10))
	for _, policy := range []core.StorePolicy{core.FailOpen, core.CountLocally(1)} {
		b.Counter = b.WithStorePolicy(policy)
		bill := b.open(5)
		b.is(bill.Add(background, 5), nil)
		b.is(bill.Settle(background, 3), nil)
	}
	b.Counter = b.WithStorePolicy(core.FailClosed)
	if bill, d, err := b.Open(background, "s", 1); bill != nil || d.Allowed || err != nil {
		t.Errorf("%+v, %v", d, err)
	}
}

// The record of a bill expires, whatever becomes of the bill.
func TestBillsExpireInRedis(t *testing.T) {
	server := redistest.Start(t)
	client := server.Client(t)
	b := billing{t, newLimiter(t, core.Options{Redis: client}).MustCounter("tokens", core.PerHour(10))}
	bill := b.open(1)
	for _, test := range []struct {
		change        func() error
		longer, lasts time.Duration
	}{
		{func() error { return nil }, 5 * time.Minute, time.Hour},
		{func() error { return bill.Add(background, 2) }, 5 * time.Minute, time.Hour},
		{func() error { return bill.Settle(background, 2) }, 0, 5 * time.Minute},
	} {
		b.is(test.change(), nil)
		key := client.Keys(background, "*:bl1:*").Val()[0]
		if left := client.PTTL(background, key).Val(); left <= test.longer || left > test.lasts+time.Millisecond {
			t.Errorf("%s expires in %v, want at most %v", key, left, test.lasts)
		}
	}
}

// A settled bill soon gives back its place in the table of this process.
func TestASettledBillGivesBackItsPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limiter := newLimiter(t, core.Options{})
		b := billing{t, limiter.MustCounter("tokens", core.PerMinute(1000))}
		for range 100 {
			b.is(b.open(1).Settle(background, 1), nil)
		}
		time.Sleep(20 * time.Minute)
		b.left(1000)
		if keys := limiter.Stats().Keys; keys > 50 {
			t.Errorf("%d keys are left of settled bills and a counter", keys)
		}
	})
}

// A store that does not answer is another error than a bill that is gone.
func TestSettlingWithoutRedis(t *testing.T) {
	server := redistest.Start(t)
	b := billing{t, newLimiter(t, core.Options{Redis: server.Client(t)}).MustCounter("tokens", core.PerHour(10))}
	bill := b.open(5)
	server.Client(t).FlushAll(background)
	b.is(bill.Settle(background, 9), core.ErrBillUnknown)
	b.left(10)
	server.Kill()
	b.is(bill.Settle(background, 9), core.ErrStore)
	b.is(bill.Add(background, 9), core.ErrStore)
}

// Only the token of a bill of the counter reaches a store. Any other is an error.
func TestTokensOfNoBill(t *testing.T) {
	limiter := newLimiter(t, core.Options{})
	tokens, other := limiter.MustCounter("tokens", core.PerHour(10)), limiter.MustCounter("other", core.PerHour(10))
	bill, _, err := tokens.Open(background, "s", 5)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := other.Resume(bill.Token()); !isWrong(err) {
		t.Errorf("of another counter: %v", err)
	}
	head, id := `{"Name":"dG9rZW5z","Subject":"cw==","ID":"`, "AAAAAAAAAAAAAAAAAAAAAA"
	charged := head + id + `","MaxDebt":1,"At":1,"Estimate":1,"Charges":[{"Limit":`
	if _, err := tokens.Resume(encoded(charged + `"10/h","Position":0}]}`)); err != nil {
		t.Fatalf("the cases below show nothing: %v", err)
	}
	for _, text := range []string{
		"", "{}", "[", head + `","MaxDebt":1}`, head + id + `"}`, head + id + `","MaxDebt":11}`, head + "AAAA" + `","MaxDebt":1}`,
		head + id + `","MaxDebt":1,"At":0,"Estimate":1,"Charges":[{"Limit":"10/h"}]}`,
		head + id + `","MaxDebt":1,"At":1,"Estimate":-1,"Charges":[{"Limit":"10/h"}]}`,
		head + id + `","MaxDebt":1,"At":9007199254740992,"Estimate":1,"Charges":[{"Limit":"10/h"}]}`,
		charged + `"10/h","Position":-1}]}`, charged + `"unlimited"}]}`, charged + `"10/h log"}]}`, charged + `"no limit"}]}`,
		charged + `"10/h"},{"Limit":"10/h"}]}`,
	} {
		if _, err := tokens.Resume(encoded(text)); !isWrong(err) {
			t.Errorf("%s: %v", text, err)
		}
	}
	if _, err := tokens.Resume("%" + bill.Token()); !isWrong(err) {
		t.Errorf("not encoded: %v", err)
	}
	if err := bill.Settle(background, 5); err != nil {
		t.Error(err)
	}
}

func encoded(text string) string { return base64.RawURLEncoding.EncodeToString([]byte(text)) }

// A bill keeps no string that a framework lends for one call only.
func TestABillKeepsNothingLent(t *testing.T) {
	lent, limiter := newLender(), newLimiter(t, core.Options{})
	bill, _, err := limiter.MustCounter("tokens", core.PerHour(10)).Open(background, lent.lend("tenant:acme"), 1)
	if err != nil {
		t.Fatal(err)
	}
	if kept := lent.kept(bill); kept != nil {
		t.Errorf("kept are %v", kept)
	}
}

// The permits of a counter that a rule leases are used in advance, so there is no debt.
func TestNoDebtWithALease(t *testing.T) {
	limiter := newLimiter(t, core.Options{})
	leased := limiter.MustCounter("n", core.PerHour(10), core.PerDay(100))
	if _, err := leased.Charge(background, "s", 1); err != nil {
		t.Errorf("before there is such a rule: %v", err)
	}
	rules := []core.Rule{{Name: "n", Limit: core.PerHour(10)}, {Name: "n", Limit: core.PerHour(10), Lease: 2}, {Name: "dry", Limit: core.PerHour(10), Lease: 2, Mode: core.DryRun}}
	for _, rule := range rules {
		attach(t, limiter, rule)
	}
	_, err := leased.Charge(background, "s", 1)
	wantRuleError(t, err, "n", "Lease", "10/h")
	_, _, err = leased.With(core.PerHour(20)).Open(background, "s", 1)
	wantRuleError(t, err, "n", "Lease", "20/h")
	for _, other := range []core.Counter{limiter.MustCounter("n", core.PerDay(10)), limiter.MustCounter("dry", core.PerHour(10))} {
		if _, err := other.Charge(background, "s", 1); err != nil {
			t.Errorf("another counter: %v", err)
		}
	}
}

// wantCosts checks what is counted of costs that are known afterwards.
func wantCosts(t *testing.T, limiter *core.Limiter, want ...core.CostStats) {
	t.Helper()
	got := limiter.Stats().Costs
	if len(got) != len(want) {
		t.Fatalf("the costs are %+v, want %+v", got, want)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("the costs are %+v, want %+v", got[i], want[i])
		}
	}
}

// Bills are counted where they are opened, and where they are settled, each once.
func TestStatsCountBills(t *testing.T) {
	onBillings(t, func(b billing, limiter *core.Limiter) {
		wantCosts(b.T, limiter)
		_ = b.open(2) // is never settled
		first, second := b.open(4), b.open(3)
		b.is(first.Settle(background, 6), nil)
		b.is(first.Settle(background, 6), nil)
		b.is(first.Settle(background, 7), core.ErrBillSettled)
		resumed, err := b.Resume(second.Token())
		b.is(err, nil)
		b.left(0, 89)
		b.is(resumed.Cancel(background), nil)
		b.left(2, 92)
		_, err = b.Charge(background, "s", 15)
		b.is(err, core.ErrDebtExceeded)
		_, _, err = limiter.MustCounter("free", core.Unlimited).Open(background, "s", 5)
		b.is(err, nil)
		wantCosts(b.T, limiter,
			core.CostStats{Rule: "free"},
			core.CostStats{Rule: "tokens", Opened: 3, Estimated: 9, Settled: 2, SettledEstimates: 7, Used: 6, DebtExceeded: 3})
		if n := limiter.Stats().DebtExceeded; n != 3 {
			b.Errorf("%d permits exceed the debt", n)
		}
	})
}

// billConn is a connection that is closed, on demand, when something about a bill was sent.
type billConn struct {
	net.Conn
	hangUp *atomic.Bool
}

func (c billConn) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	if bytes.Contains(b, []byte(":bl1:")) && c.hangUp.CompareAndSwap(true, false) {
		_ = c.Close()
	}
	return n, err
}

// A settlement whose answer was lost is counted when it is repeated. A settlement of a bill that Redis
// has lost is counted as unknown.
func TestStatsCountSettlementsWithoutAnAnswer(t *testing.T) {
	server := redistest.Start(t)
	var hangUp atomic.Bool
	client := server.Client(t, func(o *redis.Options) {
		o.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
			conn, err := new(net.Dialer).DialContext(ctx, network, addr)
			return billConn{conn, &hangUp}, err
		}
	})
	limiter := newLimiter(t, core.Options{Redis: client, Timeout: patient})
	b := billing{t, limiter.MustCounter("tokens", core.PerHour(math.MaxInt32))}
	b.is(b.open(1).Cancel(background), nil) // from here on, Redis knows the script
	bill, lost := b.open(4), b.open(5)
	hangUp.Store(true)
	b.is(bill.Settle(background, 6), core.ErrStore)
	for range 2 {
		b.is(bill.Settle(background, 6), nil)
	}
	if err := server.Client(t).FlushAll(background).Err(); err != nil {
		t.Fatal(err)
	}
	if err := lost.Settle(background, 5); !errors.Is(err, core.ErrBillUnknown) {
		t.Errorf("Settle of a lost bill: %v", err)
	}
	wantCosts(t, limiter, core.CostStats{Rule: "tokens", Opened: 3, Estimated: 10, Settled: 2, SettledEstimates: 5, Used: 6, Unknown: 1})
}

// A call that does not count by its outcome is counted as settled at nothing, whether its handler settled
// it or not. One that counts is counted once its outcome is known.
func TestStatsOfUncountedCalls(t *testing.T) {
	for _, test := range []struct {
		used, status int // -1: not settled
		want         core.CostStats
	}{
		{-1, 200, core.CostStats{}},
		{-1, 500, core.CostStats{Settled: 1, SettledEstimates: 4}},
		{0, 500, core.CostStats{Settled: 1, SettledEstimates: 4}},
		{3, 200, core.CostStats{Settled: 1, SettledEstimates: 4, Used: 3}},
		{3, 500, core.CostStats{Settled: 1, SettledEstimates: 4}},
		{9, 500, core.CostStats{Settled: 1, SettledEstimates: 4}},
		{21, 200, core.CostStats{Settled: 1, SettledEstimates: 4, Used: 21, DebtExceeded: 1}},
		{21, 500, core.CostStats{Settled: 1, SettledEstimates: 4}},
	} {
		limiter := newLimiter(t, core.Options{})
		rule := estimating("n", core.PerHour(10), 4)
		rule.Count, rule.Also = is(200), []core.Limit{core.PerDay(100)}
		answer := wantStatus(t, newGuard(t, limiter, rule), newView("GET", "/"), ok)
		answer.Run(func() int {
			if test.used >= 0 {
				_ = core.Settle(answer.Context, core.Costs{"n": test.used})
			}
			return test.status
		})
		test.want.Rule, test.want.Opened, test.want.Estimated = "n", 1, 4
		wantCosts(t, limiter, test.want)
	}
}
