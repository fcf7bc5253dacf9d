package core_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/accesslimit/accesslimit/core"
)

// hold takes a slot that is there.
func hold(t testing.TB, limiter *core.Limiter, subject string, limit core.Limit) (release func()) {
	t.Helper()
	release, d, err := holdBy(limiter, background, "n", subject, limit)
	if err != nil || !d.Allowed {
		t.Fatalf("Hold: %+v, %v", d, err)
	}
	return release
}

func TestHoldTakesASlotUntilItIsReleased(t *testing.T) {
	onBothEngines(t, func(t *testing.T, options core.Options, source core.Source) {
		var heard decisions
		options.OnDecision = heard.note
		limiter := newLimiter(t, options)
		two := core.InFlight(2)
		first := hold(t, limiter, "s", two)
		second := hold(t, limiter, "s", two)
		refused, d, err := holdBy(limiter, background, "n", "s", two)
		if err != nil || d.Allowed || d.Reason != core.LimitExceeded || d.Remaining != 0 || d.Source != source || d.Limit != two {
			t.Errorf("%+v, %v", d, err)
		}
		if d.RetryAfter <= 0 || d.RetryAfter > two.Window {
			t.Errorf("RetryAfter is %v", d.RetryAfter)
		}
		if last := heard.last(t, 3); last.Allowed {
			t.Errorf("OnDecision heard %+v", last)
		}
		refused() // nothing was taken, so nobody's slot is given back
		wantLeft(t, limiter, "n", "s", two, 0)
		wantLeft(t, limiter, "n", "other", two, 2)

		first()
		wantLeft(t, limiter, "n", "s", two, 1)
		first() // not the slot of the second
		wantLeft(t, limiter, "n", "s", two, 1)
		hold(t, limiter, "s", two)()
		second()
		wantLeft(t, limiter, "n", "s", two, 2)
	})
}

// A holder whose slot was forgotten releases nobody else's.
func TestReleaseOfAForgottenSlot(t *testing.T) {
	onBothEngines(t, func(t *testing.T, options core.Options, _ core.Source) {
		limiter := newLimiter(t, options)
		one := core.InFlight(1)
		forgotten := hold(t, limiter, "s", one)
		if _, err := resetOf(limiter, background, "n", "s", one); err != nil {
			t.Fatal(err)
		}
		release := hold(t, limiter, "s", one)
		forgotten()
		wantLeft(t, limiter, "n", "s", one, 0)
		release()
		wantLeft(t, limiter, "n", "s", one, 1)
	})
}

func TestWrongHolds(t *testing.T) {
	one := core.InFlight(1)
	short := core.Limit{Max: 1, Window: time.Second - time.Microsecond, Algorithm: core.Concurrency}
	for _, test := range []struct {
		name                      string
		counter, subject          string
		limit                     core.Limit
		ruleOfError, field, value string
	}{
		{"no name", "", "s", one, "", "name", ""},
		{"no subject", "n", "", one, "n", "subject", ""},
		{"no slots", "n", "s", core.InFlight(0), "n", "Max", "0"},
		{"too many slots", "n", "s", core.InFlight(10_001), "n", "Max", "10001"},
		{"too short to be renewed", "n", "s", short, "n", "Window", "999.999ms"},
	} {
		t.Run(test.name, func(t *testing.T) {
			slots, err := newLimiter(t, core.Options{}).Slots(test.counter, test.limit.Max)
			if err != nil {
				wantRuleError(t, err, test.ruleOfError, test.field, test.value)
				return
			}
			release, d, err := slots.LostAfter(test.limit.Window).Hold(background, test.subject)
			wantRuleError(t, err, test.ruleOfError, test.field, test.value)
			if d.Allowed || d.Reason != "" {
				t.Errorf("beside the error: %+v", d)
			}
			release()
		})
	}
}

func TestHoldWithoutAnAnswer(t *testing.T) {
	ended, cancel := context.WithCancel(background)
	cancel()
	onBothEngines(t, func(t *testing.T, options core.Options, _ core.Source) {
		limiter := newLimiter(t, options)
		release, _, err := limiter.MustSlots("n", 1).Hold(ended, "s")
		if !errors.Is(err, context.Canceled) || errors.Is(err, core.ErrStore) {
			t.Errorf("%v, want the context's error", err)
		}
		release()
		wantLeft(t, limiter, "n", "s", core.InFlight(1), 1)
	})
	release, d, err := newLimiter(t, deadRedis(t)).MustSlots("n", 1).Hold(background, "s")
	if !errors.Is(err, core.ErrStore) || d.Allowed {
		t.Errorf("%+v, %v; want ErrStore", d, err)
	}
	release()
}

// The context is for the taking alone: a slot outlives it.
func TestHoldOutlivesItsContext(t *testing.T) {
	onBothEngines(t, func(t *testing.T, options core.Options, _ core.Source) {
		limiter := newLimiter(t, options)
		ctx, cancel := context.WithCancel(background)
		release, _, err := limiter.MustSlots("n", 1).Hold(ctx, "s")
		if err != nil {
			t.Fatal(err)
		}
		cancel()
		wantLeft(t, limiter, "n", "s", core.InFlight(1), 0)
		release()
		wantLeft(t, limiter, "n", "s", core.InFlight(1), 1)
	})
}

// A slot of which nobody knows whether it was taken is given back twice: a call that is still on
// its way may take it after the first time.
func TestASlotThatIsTakenLate(t *testing.T) {
	onBothEngines(t, func(t *testing.T, options core.Options, _ core.Source) {
		limiter := newLimiter(t, options)
		taken := core.TakeLate(limiter)
		if _, _, err := limiter.MustSlots("n", 1).Hold(background, "s"); !errors.Is(err, core.ErrStore) {
			t.Fatalf("%v, want ErrStore", err)
		}
		<-taken
		eventually(t, "the slot is free", func() bool {
			d, err := peek(limiter, background, "n", "s", core.InFlight(1))
			return err == nil && d.Remaining == 1
		})
	})
}
