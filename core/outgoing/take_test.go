package outgoing_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/outgoing"
	"github.com/accesslimit/accesslimit/internal/limitertest"
)

// onePerSecond lets one call through at once, and another one each second.
var onePerSecond = core.PerSecond(1).Bucket(1)

func TestTurnsComeAtTheRateOfTheBucket(t *testing.T) {
	virtually(t, outgoing.Rule{Limit: core.PerSecond(10).Bucket(2)}, func(t *testing.T, turns *outgoing.Turns) {
		wantTook(t, 800*time.Millisecond, func() {
			for range 10 {
				call(t, turns, alice, outgoing.Answer{})
			}
		})
		if s := turns.Stats(); s.Sent != 10 || s.Waited != 8 || s.WaitTime != 800*time.Millisecond || s.Waiting != 0 {
			t.Errorf("the counts are %+v", s)
		}
	})
}

// A wait above MaxWait, or beyond the deadline, is an error at once, and charges nothing.
func TestAWaitThatIsTooLongChargesNothing(t *testing.T) {
	virtually(t, outgoing.Rule{Limit: onePerSecond, MaxWait: 900 * time.Millisecond}, func(t *testing.T, turns *outgoing.Turns) {
		call(t, turns, alice, outgoing.Answer{})
		wantTook(t, 0, func() {
			if wait := wantWait(t, turns, alice, time.Second); wait.Rule != "api" || wait.Key != alice || wait.Paused {
				t.Errorf("the error is %+v", wait)
			}
		})
		time.Sleep(time.Second)
		wantTook(t, 0, func() { call(t, turns, alice, outgoing.Answer{}) })
		time.Sleep(300 * time.Millisecond)
		ctx, cancel := context.WithTimeout(background, 600*time.Millisecond)
		defer cancel()
		wantTook(t, 0, func() {
			var wait *outgoing.WaitError
			if _, err := turns.Take(ctx, alice); !errors.As(err, &wait) || wait.Wait != 700*time.Millisecond {
				t.Errorf("Take: %v", err)
			}
		})
	})
}

// A deadline that ends while a call waits for a slot is a WaitError, in whatever step it ends.
func TestADeadlineThatEndsInLine(t *testing.T) {
	virtually(t, outgoing.Rule{InFlight: 1, MaxWait: time.Hour}, func(t *testing.T, turns *outgoing.Turns) {
		take(t, turns, alice)
		for wait := time.Millisecond; wait < 50*time.Millisecond; wait += time.Millisecond {
			ctx, cancel := context.WithTimeout(background, wait)
			if _, err := turns.Take(ctx, alice); !errors.As(err, new(*outgoing.WaitError)) {
				t.Errorf("after %v: %v", wait, err)
			}
			cancel()
		}
	})
}

// A caller who leaves while waiting costs others no turn if nobody waits behind it.
func TestACancelledCallerLosesNoTurnForOthers(t *testing.T) {
	virtually(t, outgoing.Rule{Limit: onePerSecond}, func(t *testing.T, turns *outgoing.Turns) {
		call(t, turns, alice, outgoing.Answer{})
		ctx, cancel := context.WithTimeoutCause(background, time.Hour, nil)
		left := make(chan error)
		go func() {
			_, err := turns.Take(ctx, alice)
			left <- err
		}()
		time.Sleep(300 * time.Millisecond)
		cancel()
		if err := <-left; !errors.Is(err, context.Canceled) {
			t.Errorf("Take: %v", err)
		}
		wantTook(t, 700*time.Millisecond, func() { call(t, turns, alice, outgoing.Answer{}) })
	})
}

// Turns, slots and pauses of a name are those of a Pacer, Slots and a ban by hand of the name, so that
// processes of any version count together.
func TestKeysAreThoseOfPacerAndSlots(t *testing.T) {
	onBothEngines(t, func(t *testing.T, options core.Options) {
		limiter, limit := newLimiter(t, options), core.PerHour(10).Bucket(10)
		turns := newTurns(t, limiter, outgoing.Rule{Limit: limit, InFlight: 3})
		turn := take(t, turns, alice)
		bucket, err := limiter.MustPacer("api", limit).Peek(background, alice)
		if err != nil || bucket.Remaining != 9 {
			t.Errorf("the bucket: %+v, %v", bucket, err)
		}
		for _, want := range []int{2, 3} {
			if slots, err := limiter.MustSlots("api", 3).Peek(background, alice); err != nil || slots.Remaining != want {
				t.Errorf("%d slots are free, want %d: %v", slots.Remaining, want, err)
			}
			turn.Release()
		}
	})
}

func TestSlotsBoundTheCallsInFlight(t *testing.T) {
	virtually(t, outgoing.Rule{InFlight: 2, MaxWait: time.Second}, func(t *testing.T, turns *outgoing.Turns) {
		first, second := take(t, turns, alice), take(t, turns, alice)
		wantTook(t, time.Second, func() { wantWait(t, turns, alice, 0) })
		time.AfterFunc(300*time.Millisecond, first.Release)
		wantTook(t, 300*time.Millisecond, func() { take(t, turns, alice).Release() })
		call(t, turns, bob, outgoing.Answer{})
		second.Release()
		second.Release()
	})
}

// A call that has its turn, but no slot, gives the turn back.
func TestATurnWithoutASlotIsGivenBack(t *testing.T) {
	limit := core.PerHour(10).Bucket(10)
	virtually(t, outgoing.Rule{Limit: limit, InFlight: 1, MaxWait: time.Second}, func(t *testing.T, turns *outgoing.Turns) {
		held := take(t, turns, alice)
		for range 5 {
			wantWait(t, turns, alice, 0)
		}
		held.Release()
		for range 9 {
			call(t, turns, alice, outgoing.Answer{})
		}
		wantWait(t, turns, alice, 0)
	})
}

// Calls wait in line for slots, so a process asks for one at a time, and all are served.
func TestManyCallsShareFewSlots(t *testing.T) {
	onBothEngines(t, func(t *testing.T, options core.Options) {
		var processes []*outgoing.Turns
		for range 3 {
			processes = append(processes, newTurns(t, newLimiter(t, options), outgoing.Rule{InFlight: 4}))
			if options.Redis == nil {
				break
			}
		}
		inFlight, done := make(chan struct{}, 4), make(chan error)
		const workers, calls = 20, 5
		for i := range workers {
			go func() { done <- sendInTurn(processes[i%len(processes)], inFlight, calls) }()
		}
		for range workers {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
	})
}

// sendInTurn makes calls that must never fill inFlight.
func sendInTurn(turns *outgoing.Turns, inFlight chan struct{}, calls int) error {
	for range calls {
		turn, err := turns.Take(background, alice)
		if err != nil {
			return err
		}
		select {
		case inFlight <- struct{}{}:
		default:
			err = errors.New("more calls are in flight than slots")
		}
		<-inFlight
		turn.Release()
		if err != nil {
			return err
		}
	}
	return nil
}

func resetAfter(t *testing.T, watch core.Pacer) time.Duration {
	d, err := watch.Peek(background, alice)
	if err != nil {
		t.Error(err)
	}
	return d.ResetAfter
}

func TestWrongRules(t *testing.T) {
	limiter := newLimiter(t, core.Options{})
	for field, rule := range map[string]outgoing.Rule{
		"Name": {Limit: plenty}, "Limit": {Name: "n", Limit: core.PerSecond(5)}, "Also[0]": {Name: "n", Limit: plenty, InFlight: 10_001},
		"InFlight": {Name: "n", Limit: plenty, InFlight: -1}, "MaxWait": {Name: "n", Limit: plenty, MaxWait: -1},
		"MaxPause": {Name: "n", Limit: plenty, MaxPause: time.Millisecond}, "Retries": {Name: "n", Limit: plenty, Retries: -1},
	} {
		_, err := outgoing.New(limiter, rule)
		var wrong *core.RuleError
		if !errors.As(err, &wrong) || wrong.Field != field {
			t.Errorf("%+v: %v; want an error about %s", rule, err, field)
		}
	}
	if _, err := outgoing.New(nil, outgoing.Rule{}); err == nil {
		t.Error("a nil Limiter hands out turns")
	}
	_, err := newTurns(t, limiter, outgoing.Rule{}).Take(background, "")
	limitertest.WantRuleError(t, err, "api", "key", "")
}

// A turn that comes during a pause is given back, so it is there when the pause is over.
func TestATurnThatComesDuringAPauseIsGivenBack(t *testing.T) {
	rule := outgoing.Rule{Limit: core.PerHour(1).Bucket(1), MaxWait: time.Hour + time.Minute}
	virtually(t, rule, func(t *testing.T, turns *outgoing.Turns) {
		first := take(t, turns, alice)
		time.AfterFunc(55*time.Minute, func() { first.Answered(outgoing.Answer{Wait: 10 * time.Minute}) })
		wantTook(t, time.Hour, func() {
			if wait := wantWait(t, turns, alice, 5*time.Minute); !wait.Paused {
				t.Errorf("the error is %+v", wait)
			}
		})
		time.Sleep(5 * time.Minute)
		wantTook(t, 0, func() { take(t, turns, alice).Release() })
	})
}
