package core_test

import (
	"context"
	"errors"
	"math"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/internal/redistest"
)

// billing is a counter whose costs are known afterwards.
type billing struct {
	*testing.T
	core.Counter
}

// open opens a bill of a subject s.
func (b billing) open(estimate int) *core.Bill {
	b.Helper()
	bill, d, err := b.Open(background, "s", estimate)
	if err != nil || !d.Allowed || bill == nil {
		b.Fatalf("%+v, %v", d, err)
	}
	return bill
}

// is checks an error. nil wants none.
func (b billing) is(err, want error) {
	b.Helper()
	if !errors.Is(err, want) {
		b.Errorf("%v, want %v", err, want)
	}
}

// left checks what is left of each limit.
func (b billing) left(want ...int) {
	b.Helper()
	d, err := b.Peek(background, "s")
	if err != nil {
		b.Fatal(err)
	}
	each := d.All
	if each == nil {
		each = []core.Decision{d}
	}
	for i, d := range each {
		if d.Remaining != want[i] {
			b.Errorf("%v: %d left, want %d", d.Limit, d.Remaining, want[i])
		}
	}
}

// onBillings runs a test with two limits on both engines.
func onBillings(t *testing.T, test func(b billing, limiter *core.Limiter)) {
	onBothEngines(t, func(t *testing.T, options core.Options, _ core.Source) {
		limiter := newLimiter(t, options)
		test(billing{t, limiter.MustCounter("tokens", core.PerHour(10), core.PerCalendarMonth(100, "UTC"))}, limiter)
	})
}

// billStories are steps on a counter of 10 an hour and 100 a month. After a step may follow the error
// that it gives, and part of its text.
var billStories = map[string]struct {
	terms core.BillTerms
	steps string
}{
	"a bill ends once, at what was used in all": {
		steps: "open 4; add 3; left 3 93; settle 5; left 5 95; settle 5; settle 6 = settled, at 5; settle 0 = settled; add 1 = settled; left 5 95",
	},
	"a refused Open charges nothing, and is not remembered": {steps: "open 6; refused 5; left 4 94; settle 0; open 5"},
	"an estimate that never fits is an error":               {steps: "open 11 = costs; left 10 100"},
	"an estimate is cut":                                    {core.BillTerms{MaxEstimate: 0.25}, "open max; left 8 98; settle 0; left 10 100"},
	"what is above the debt is reported, also if the reply to the first settlement was lost": {
		core.BillTerms{MaxDebt: 0.5}, "open 5; settle 18 = debt : 3 were; settle 18 = debt : 3 were; left 0 82; exceeded 3; charge 1 = debt",
	},
	"use above the debt is counted once, whether Add or Settle finds it": {
		steps: "open 5; add 17 = debt; settle 23 = debt; exceeded 3",
	},
	"a negative number changes nothing": {steps: "open 1; add -1 = wrong; settle -1 = wrong; left 9 99"},
	"what one limit was not charged is not given back": {
		steps: "charge 10; charge 10; left 0 80; charge 7 = debt; exceeded 7; left 0 73; refund 7; left 0 80",
	},
	"the largest charge is bounded, and one of nothing is none": {
		steps: "charge 0; left 10 100; charge max = debt; left 0 0; exceeded " + strconv.Itoa(min(1<<40, math.MaxInt-20)), // 2^40 is the most that a call adds
	},
	"bills obey the overrides when they are opened, and no longer when they are settled": {
		core.BillTerms{}, "max 20; open 18; left 2 82; block; refused 1; resume; add 2; lift; settle 3; open max; resume; settle max; remove; left 7 97",
	},
	"charges obey overrides": {core.BillTerms{}, "max 20; charge 40; charge 1 = debt; lift; charge max; block; charge 1 = blocked; remove; left 0 59"},
}

func TestBills(t *testing.T) {
	for name, story := range billStories {
		t.Run(name, func(t *testing.T) {
			onBillings(t, func(b billing, limiter *core.Limiter) {
				b.Counter = b.WithBills(story.terms)
				s := storyteller{billing: b, operator: operator{b.T, limiter, "tokens", core.PerHour(10), []core.Limit{core.PerCalendarMonth(100, "UTC")}}}
				for step := range strings.SplitSeq(story.steps, "; ") {
					s.play(step)
				}
			})
		})
	}
}

// storyteller plays the steps of a story.
type storyteller struct {
	billing
	operator operator
	bill     *core.Bill
	charged  core.Decision
}

// billErrors are the errors of steps.
var billErrors = map[string]error{
	"": nil, "settled": core.ErrBillSettled, "costs": core.ErrCostExceedsLimit, "debt": core.ErrDebtExceeded, "wrong": new(core.RuleError),
}

func (s *storyteller) play(step string) {
	s.Helper()
	call, fails, _ := strings.Cut(step, " = ")
	kind, text, _ := strings.Cut(fails, " ")
	kind = strings.TrimSuffix(kind, ",")
	verb, number, _ := strings.Cut(call, " ")
	n := numberOf(number)
	var err error
	switch verb {
	case "left":
		hour, month, _ := strings.Cut(number, " ")
		s.left(numberOf(hour), numberOf(month))
	case "exceeded":
		if got := s.operator.limiter.Stats().DebtExceeded; got != uint64(n) {
			s.Errorf("%d permits exceed the debt, want %d", got, n)
		}
	case "max":
		s.operator.max("s", n)
	case "lift":
		s.operator.lift("s")
	case "block":
		s.operator.block("s", time.Time{})
	case "remove":
		s.operator.remove("s")
	case "refund":
		err = s.operator.limiter.Refund(background, s.charged, n)
	case "refused":
		s.refused(n)
	default:
		err = s.change(verb, n, kind == "blocked")
	}
	wrong := kind == "wrong" && isWrong(err)
	if !wrong && kind != "blocked" && !errors.Is(err, billErrors[kind]) || err != nil && !strings.Contains(err.Error(), text) {
		s.Errorf("%s: %v", step, err)
	}
}

func numberOf(text string) int {
	if text == "max" {
		return math.MaxInt
	}
	n, _ := strconv.Atoi(text)
	return n
}

// change makes a call that charges or settles.
func (s *storyteller) change(verb string, n int, blocked bool) (err error) {
	s.Helper()
	switch verb {
	case "open":
		s.bill, s.charged, err = s.Open(background, "s", n)
	case "charge":
		s.charged, err = s.Charge(background, "s", n)
		if blocked != (s.charged.Reason == core.Blocked) || s.charged.Allowed == blocked && !errors.Is(err, core.ErrCostExceedsLimit) {
			s.Errorf("charge %d: %+v, blocked: %t", n, s.charged, blocked)
		}
	case "resume":
		s.bill, err = s.Resume(s.bill.Token())
	case "add":
		err = s.bill.Add(background, n)
	case "settle":
		err = s.bill.Settle(background, n)
	}
	return err
}

// refused checks an Open that is refused. Its bill has nothing to settle.
func (s *storyteller) refused(n int) {
	s.Helper()
	bill, d, err := s.Open(background, "s", n)
	if bill != nil || d.Allowed || err != nil || d.RetryAfter <= 0 && d.Reason != core.Blocked || bill.Token() != "" {
		s.Fatalf("%v, %+v, %v", bill, d, err)
	}
	s.is(bill.Settle(background, 1), core.ErrBillUnknown)
	s.is(bill.Add(background, 0), core.ErrBillUnknown)
}

// A bill that is never settled stays at what it was charged: nothing is given back because the
// context of a caller who hung up has ended. Settling is carried out even then.
func TestADisconnectDoesNotRefund(t *testing.T) {
	onBillings(t, func(b billing, _ *core.Limiter) {
		gone, hangUp := context.WithCancel(background)
		bill, _, err := b.Open(gone, "s", 4)
		b.is(err, nil)
		hangUp()
		b.left(6, 96)
		b.is(bill.Add(gone, 1), nil)
		b.is(bill.Settle(gone, 2), nil)
		b.left(8, 98)
	})
}

// While a cluster moves a slot, it runs no script with a new key, such as a bill's.
func TestOpenWhileASlotMoves(t *testing.T) {
	cluster := redistest.StartCluster(t)
	subject := cluster.Moving(t)
	counter := newLimiter(t, core.Options{Redis: cluster.Client(t), Timeout: patient}).MustCounter("tokens", core.PerHour(10))
	if _, err := counter.Allow(background, subject); err != nil {
		t.Fatal(err)
	}
	impatient := newLimiter(t, core.Options{Redis: cluster.Client(t), Timeout: 250 * time.Millisecond}).MustCounter("tokens", core.PerHour(10))
	eventually(t, "Redis says in time that the slot is moving", func() bool {
		var failed *core.StoreError
		_, _, err := impatient.Open(background, subject, 1)
		return errors.As(err, &failed) && failed.Class == core.StoreSlotMoving && !failed.Class.MayHaveCharged()
	})
	if d, err := counter.Peek(background, subject); err != nil || d.Remaining != 9 {
		t.Errorf("%d left, %v; want 9", d.Remaining, err)
	}
}

// Of many additions, the newest 32 can be given back, also in debt.
func TestABillWithManyAdditions(t *testing.T) {
	onBothEngines(t, func(t *testing.T, options core.Options, _ core.Source) {
		b := billing{t, newLimiter(t, options).MustCounter("tokens", core.PerDay(100), core.PerHour(1).Bucket(100))}
		bill := b.open(10)
		for range 40 {
			b.is(bill.Add(background, 1), nil)
		}
		b.left(50, 50)
		b.is(bill.Settle(background, 3), nil)
		b.left(92, 92)
		bill = b.open(80)
		_, err := b.Charge(background, "s", 20) // a bucket in debt gives back, too
		b.is(err, nil)
		b.is(bill.Settle(background, 0), nil)
		b.left(72, 72)
	})
}

// A bill that was charged in several windows is settled at its sum, which may exceed what one
// window holds. Resets stand for the ends of windows.
func TestABillAboveWhatOneWindowHolds(t *testing.T) {
	const n = min(1_000_000_000_000, math.MaxInt/4)
	onBothEngines(t, func(t *testing.T, options core.Options, _ core.Source) {
		b := billing{t, newLimiter(t, options).MustCounter("bytes", core.PerDay(n))}
		bill := b.open(n)
		for range 2 {
			_, err := b.Reset(background, "s")
			b.is(err, nil)
			b.is(bill.Add(background, n), nil)
		}
		b.is(bill.Settle(background, 3*n), nil)
		b.left(0)
	})
}

func TestWrongTermsOfBills(t *testing.T) {
	counter := newLimiter(t, core.Options{}).MustCounter("tokens", core.PerHour(10))
	for _, terms := range []core.BillTerms{
		{Expires: time.Millisecond}, {Expires: 367 * 24 * time.Hour}, {MaxDebt: -1}, {MaxDebt: 10.1}, {MaxDebt: math.NaN()},
		{MaxEstimate: -0.1}, {MaxEstimate: 1.1}, {MaxEstimate: math.NaN()},
	} {
		if _, _, err := counter.WithBills(terms).Open(background, "s", 1); !isWrong(err) {
			t.Errorf("%+v: %v", terms, err)
		}
	}
}

// A bill replaces the refund of its decision.
func TestABillsDecisionCannotBeRefunded(t *testing.T) {
	limiter := newLimiter(t, core.Options{})
	_, several, err := limiter.MustCounter("tokens", core.PerHour(10), core.PerDay(100)).Open(background, "s", 4)
	_, single, err2 := limiter.MustCounter("single", core.PerHour(10)).Open(background, "s", 4)
	if err := errors.Join(err, err2); err != nil {
		t.Fatal(err)
	}
	for _, d := range append(several.All, several, single) {
		if err := limiter.Refund(background, d, 1); !isWrong(err) {
			t.Errorf("%v", err)
		}
	}
}

func isWrong(err error) bool {
	var wrong *core.RuleError
	return errors.As(err, &wrong)
}
