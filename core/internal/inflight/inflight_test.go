package inflight_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
	"github.com/accesslimit/accesslimit/core/internal/failure"
	"github.com/accesslimit/accesslimit/core/internal/inflight"
	"github.com/accesslimit/accesslimit/core/internal/memstore"
	"github.com/accesslimit/accesslimit/core/internal/operatorlog"
	"github.com/accesslimit/accesslimit/core/internal/refund"
	"github.com/accesslimit/accesslimit/internal/bounded"
	"github.com/accesslimit/accesslimit/internal/leakcheck"
	"github.com/accesslimit/accesslimit/internal/logtest"
)

func TestMain(m *testing.M) { leakcheck.Main(m) }

var background = context.Background()

// world is a keeper with its store, which can fail.
type world struct {
	*memstore.Store
	*inflight.Keeper
	log      logtest.Log
	failures failure.Counts

	brokenRenewals, brokenGiveBacks, brokenCharges int // the number of the next ones that fail

	mu              sync.Mutex
	renewals        []error // how the next ones end
	brokenBy        error   // how others fail
	passedGiveBacks int     // how many GiveBacks pass before those that fail
	giveBacks       int
}

func newWorld(t *testing.T) *world {
	w := &world{Store: memstore.New(100, nil), brokenBy: errors.New("out of order")}
	bounded.Cleanup(t, w.Store.Close)
	log := operatorlog.New(w.log.Logger())
	bounded.Cleanup(t, log.Close)
	w.Keeper = inflight.New(brokenStore{w}, new(refund.Ledger), &w.failures, log)
	bounded.Cleanup(t, w.Keeper.Close)
	return w
}

type brokenStore struct{ w *world }

func (b brokenStore) Do(ctx context.Context, op *algorithm.Op) {
	if err := b.w.unlessBroken(&b.w.brokenCharges, func() error { b.w.Store.Do(ctx, op); return nil }); err != nil {
		for i := range op.Verdicts {
			op.Verdicts[i].Err = err
		}
	}
}

func (b brokenStore) Change(ctx context.Context, c *algorithm.Change) error {
	b.w.mu.Lock()
	defer b.w.mu.Unlock()
	change, broken := func() error { return b.w.Store.Change(ctx, c) }, &b.w.brokenGiveBacks
	switch {
	case c.Kind == algorithm.Renews && len(b.w.renewals) > 0:
		err := b.w.renewals[0]
		b.w.renewals = b.w.renewals[1:]
		return err
	case c.Kind == algorithm.Renews:
		broken = &b.w.brokenRenewals
	default:
		b.w.giveBacks++
		if b.w.passedGiveBacks > 0 {
			b.w.passedGiveBacks--
			return change()
		}
	}
	return b.w.unlessBroken(broken, change)
}

func (w *world) unlessBroken(times *int, do func() error) error {
	if *times > 0 {
		*times--
		return w.brokenBy
	}
	return do()
}

// take charges a call of one to a limit, and returns the charge.
func (w *world) take(t *testing.T, key string, limit *algorithm.Limit) algorithm.Charge {
	t.Helper()
	op := algorithm.NewOp(algorithm.AllOrNone, algorithm.Counter{Key: []byte(key), Limit: limit, Cost: 1, Mark: w.NewHolder()})
	w.Do(background, op)
	if op.Verdicts[0].Taken != 1 {
		t.Fatalf("not charged: %+v", op.Verdicts[0])
	}
	return op.Counters[0].Charged(&op.Verdicts[0])
}

func (w *world) wantLeft(t *testing.T, key string, limit *algorithm.Limit, want int64) {
	t.Helper()
	op := algorithm.NewOp(algorithm.Looks, algorithm.Counter{Key: []byte(key), Limit: limit, Cost: 1})
	w.Do(background, op)
	if got := op.Verdicts[0].Remaining; got != want {
		t.Errorf("%d left of %s, want %d", got, key, want)
	}
}

func limited(kind algorithm.Kind, permits int64, window time.Duration) *algorithm.Limit {
	limit := algorithm.Windowed(kind, permits, window.Microseconds())
	return &limit
}

func slots(n int64, window time.Duration) *algorithm.Limit {
	return limited(algorithm.Concurrency, n, window)
}

// A renewal that fails is soon repeated. The slot is lost only if none succeeds for a whole window.
func TestARenewalThatFailsIsRepeatedSoon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, one := newWorld(t), slots(1, 12*time.Second)
		w.brokenRenewals = 7
		// Renewed after 4 s, and then tried each second until it succeeds after 11.
		held := w.Hold([]algorithm.Charge{w.take(t, "s", one)})
		time.Sleep(15 * time.Second)
		w.wantLeft(t, "s", one, 0)
		held.Release()
		w.wantLeft(t, "s", one, 1)
		w.wantFailures(t, 7, "could not be renewed")
	})
}

// A renewal whose answer is missing may reach the store after the release, and even after the slot was
// given back once more, and take the slot again. It is given back then, unless a later renewal was
// answered. One that was never sent is no answer.
func TestARenewalThatComesAfterTheRelease(t *testing.T) {
	cause := errors.New("out of order")
	timeout, open := &failure.Error{Class: failure.Timeout, Err: cause}, &failure.Error{Class: failure.BreakerOpen, Err: cause}
	for name, test := range map[string]struct {
		errs []error // of the renewals
		want int64
	}{
		"not answered":          {[]error{timeout}, 1},
		"not answered, unsent":  {[]error{timeout, open}, 1},
		"not answered, renewed": {[]error{timeout, nil}, 0},
		"unsent":                {[]error{open}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, one := newWorld(t), slots(1, 12*time.Second)
				slot := w.take(t, "s", one)
				w.renewals = test.errs
				held := w.Hold([]algorithm.Charge{slot})
				time.Sleep(3500*time.Millisecond + time.Duration(len(test.errs))*time.Second) // the first after 4 s, then one each second
				synctest.Wait()
				held.Release()
				time.Sleep(150 * time.Millisecond) // by then it is given back once more
				synctest.Wait()
				if err := w.Store.Change(background, &algorithm.Change{Kind: algorithm.Renews, Charges: []algorithm.Charge{slot}}); err != nil {
					t.Fatal(err)
				}
				w.wantLeft(t, "s", one, 0)
				time.Sleep(time.Second)
				synctest.Wait()
				w.wantLeft(t, "s", one, test.want)
			})
		})
	}
}

// wantFailures checks how many failures of the store were counted, and that one line has their cause.
func (w *world) wantFailures(t *testing.T, want uint64, what string) {
	t.Helper()
	if w.log.Count("level=WARN", what, "out of order") != 1 {
		t.Errorf("want one line with the cause, got: %s", w.log.String())
	}
	var got uint64
	w.failures.Each(func(_ failure.Class, n uint64) { got += n })
	if got != want {
		t.Errorf("%d failures are counted, want %d", got, want)
	}
}

// A slot that the store does not take back is given back in the background, and other charges are
// not.
func TestASlotThatIsNotTakenBackIsTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, one, two := newWorld(t), slots(1, time.Minute), limited(algorithm.FixedWindow, 2, time.Hour)
		w.brokenGiveBacks = 1
		u := w.NewCompletion(background, false, false)
		u.Add(w.take(t, "slot", one), 1, nil)
		u.Add(w.take(t, "counted", two), 2, func(int) bool { return false })
		u.Run(func() int { return 200 })
		w.wantLeft(t, "slot", one, 0)
		time.Sleep(10 * time.Second)
		synctest.Wait()
		w.wantLeft(t, "slot", one, 1)
		w.wantLeft(t, "counted", two, 1)
		w.wantFailures(t, 1, "could not be given back")
	})
}

// Only slots that the store may have taken without an answer are dropped, and twice if it may take them
// later still.
func TestUnconfirmedSlots(t *testing.T) {
	timeout, unreachable := &failure.Error{Class: failure.Timeout}, &failure.Error{Class: failure.Unreachable}
	for name, test := range map[string]struct {
		verdict algorithm.Verdict
		times   int
	}{
		"answered":                  {algorithm.Verdict{Taken: 1}, 0},
		"no answer":                 {algorithm.Verdict{Err: timeout}, 2},
		"stopped halfway":           {algorithm.Verdict{Err: &failure.Error{Class: failure.Refused}}, 1},
		"never sent":                {algorithm.Verdict{Err: unreachable}, 0},
		"the caller left":           {algorithm.Verdict{Ended: context.Canceled}, 2},
		"refused by another server": {algorithm.Verdict{From: algorithm.FromNobody}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, one, two := newWorld(t), slots(1, time.Minute), limited(algorithm.FixedWindow, 2, time.Hour)
				slot, other := w.take(t, "slot", one), w.take(t, "other", two)
				w.DropUnconfirmedSlots([]algorithm.Counter{
					{Key: other.Key, Limit: two, Cost: 1}, {Key: slot.Key, Limit: one, Cost: 1, Mark: slot.Mark},
				}, []algorithm.Verdict{test.verdict, test.verdict})
				time.Sleep(10 * time.Second)
				synctest.Wait()
				w.wantLeft(t, "slot", one, int64(min(1, test.times)))
				w.wantLeft(t, "other", two, 1)
				if w.giveBacks != test.times {
					t.Errorf("the slot was given back %d times, want %d", w.giveBacks, test.times)
				}
			})
		})
	}
}

// ending is a context that ends when its err is set.
type ending struct {
	context.Context
	err error
}

func (e *ending) Err() error { return e.err }

// sent is a reply with a status.
type sent int

func (s sent) Status() int { return int(s) }

// The outcome is the status that the handler returned, or else that was sent, or else 200. If a call
// was not answered, its caller may have left only if its context was canceled. After a deadline of
// the service's own, the server sends 200. A panic may come after the reply has begun.
func TestOutcomes(t *testing.T) {
	const panics = -1
	canceled, deadline := context.Canceled, context.DeadlineExceeded
	for _, test := range []struct {
		isRPC    bool
		returned int
		reply    inflight.Reply
		ended    error
		asked    []int // the statuses that are asked about until one counts; none does
	}{
		{false, 401, nil, nil, []int{401}},
		{false, 401, sent(500), canceled, []int{401}},
		{false, 0, nil, nil, []int{200}},
		{false, 103, sent(404), nil, []int{404}},
		{false, 0, sent(101), nil, []int{101}},
		{false, 0, sent(103), nil, []int{200}},
		{false, 0, nil, deadline, []int{200}},
		{false, 0, nil, canceled, []int{200, 499}},
		{false, 0, sent(200), canceled, []int{200}},
		{false, panics, nil, nil, []int{500}},
		{false, panics, sent(200), canceled, []int{500, 200}},
		{false, panics, sent(500), nil, []int{500}},
		{true, 0, nil, canceled, []int{0}},
		{true, panics, nil, nil, []int{13}},
	} {
		w, two := newWorld(t), limited(algorithm.FixedWindow, 2, time.Hour)
		for i, counting := range append(test.asked, 418) {
			ctx := &ending{Context: background}
			u, key := w.NewCompletion(ctx, test.isRPC, false), string(rune('a'+i))
			var asked []int
			u.Add(w.take(t, key, two), 1, func(status int) bool {
				asked = append(asked, status)
				return status == counting
			})
			if test.reply != nil {
				u.Follow(test.reply)
			}
			run(u, func() int {
				ctx.err = test.ended
				if test.returned == panics {
					panic("of the handler")
				}
				return test.returned
			})
			want, left := test.asked, int64(2)
			if i < len(want) {
				want, left = want[:i+1], 1
			}
			if !slices.Equal(asked, want) {
				t.Errorf("%+v: %d received %d, want %d", test, counting, asked, want)
			}
			w.wantLeft(t, key, two, left)
		}
	}
}

// run is Run for handlers that may panic.
func run(u *inflight.Completion, handle func() int) {
	defer func() { _ = recover() }()
	u.Run(handle)
}

// A call that was shown to somebody gives back what is left of its charge, and only once, however
// often it is run.
func TestACallGivesBackOnce(t *testing.T) {
	for _, shown := range []bool{true, false} {
		w, five := newWorld(t), limited(algorithm.FixedWindow, 5, time.Hour)
		u := w.NewCompletion(background, false, shown)
		w.take(t, "s", five)
		u.Add(w.take(t, "s", five), 1, func(int) bool { return false })
		ran := 0
		for range 2 {
			u.Run(func() int { ran++; return 200 })
		}
		if ran != 2 {
			t.Errorf("the handler ran %d times", ran)
		}
		w.wantLeft(t, "s", five, 4)
	}
}

// A Completion that is nil only runs the handler.
func TestNothingToGiveBack(t *testing.T) {
	var u *inflight.Completion
	ran := 0
	u.Run(func() int { ran++; return 200 })
	u.Abandon()
	if ran != 1 || u.HoldsReply() || u.NeedsStatus() {
		t.Errorf("ran %d times, %v, %v", ran, u.HoldsReply(), u.NeedsStatus())
	}
}
