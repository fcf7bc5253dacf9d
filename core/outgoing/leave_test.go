package outgoing_test

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/outgoing"
	"github.com/accesslimit/accesslimit/internal/redistest"
)

// Whenever callers leave, also while Redis is asked, all slots are free in the end, and nobody waits in a
// line. Only the calls that were sent are charged. After pauses, the place of a probe is free.
func TestNothingIsLostWhenCallersLeave(t *testing.T) {
	const most = 10_000
	hourly := core.PerHour(most).Bucket(most)
	onBothEngines(t, func(t *testing.T, options core.Options) {
		for name, limit := range map[string]core.Limit{"free": hourly, "paused": plenty} {
			limiter := newLimiter(t, options)
			turns := newTurns(t, limiter, outgoing.Rule{Name: name, Limit: limit, InFlight: 3, MaxWait: patient})
			sent := takeAndLeave(turns, name == "paused")
			bucket, slots := limiter.MustPacer(name, limit), limiter.MustSlots(name, 3)
			eventually(t, "only calls that were sent are charged", func() bool {
				d, err := bucket.Peek(background, alice)
				return err == nil && (limit == plenty || d.Remaining >= most-sent)
			})
			eventually(t, "all slots are free", func() bool {
				d, err := slots.Peek(background, alice)
				return err == nil && d.Remaining == 3
			})
			for range 2 { // the probe, if there is one, and another call
				call(t, turns, alice, outgoing.Answer{})
			}
			if s := turns.Stats(); s.Waiting != 0 || outgoing.Lines(turns) != 0 {
				t.Errorf("%s: the counts are %+v, and there are %d lines", name, s, outgoing.Lines(turns))
			}
		}
	})
}

// When all calls that wait for their turns are cancelled together, the next one is as early as if
// they had never come.
func TestTurnsOfAllWhoHaveLeftComeBack(t *testing.T) {
	onBothEngines(t, func(t *testing.T, options core.Options) {
		const waiting = 80
		limit := core.PerHour(1).Bucket(1)
		options.Timeout = patient
		limiter := newLimiter(t, options)
		rule := outgoing.Rule{Limit: limit, MaxWait: 1000 * time.Hour}
		turns, bucket := newTurns(t, limiter, rule), limiter.MustPacer("api", limit)
		rule.MaxWait = time.Second
		impatient := newTurns(t, limiter, rule)
		call(t, turns, alice, outgoing.Answer{})
		ctx, leave := context.WithCancel(background)
		var callers sync.WaitGroup
		for range waiting {
			callers.Go(func() { _, _ = turns.Take(ctx, alice) })
		}
		eventually(t, "all calls wait", func() bool { return resetAfter(t, bucket) > waiting*time.Hour })
		leave()
		callers.Wait()
		eventually(t, "the turns come back", func() bool { return wantWait(t, impatient, alice, 0).Wait <= time.Hour })
	})
}

// takeAndLeave makes calls whose callers leave at any moment, and returns how many were sent.
func takeAndLeave(turns *outgoing.Turns, paused bool) int {
	var callers sync.WaitGroup
	var sent atomic.Int64
	for i := range 40 {
		callers.Go(func() {
			for j := range 20 {
				ctx, cancel := context.WithTimeout(background, time.Duration(i*j%40)*500*time.Microsecond)
				if turn, err := turns.Take(ctx, alice); err == nil {
					sent.Add(1)
					if paused && j%3 > 0 {
						turn.Answered(outgoing.Answer{Refused: j%3 == 1, Wait: time.Millisecond})
					}
					turn.Release()
				}
				cancel()
			}
		})
	}
	callers.Wait()
	return int(sent.Load())
}

// A caller who leaves while it waits for an answer of Redis gets its error at once. What Redis has granted,
// a free turn and a slot, or a later turn, is given back.
func TestWhatRedisGrantsTooLateIsGivenBack(t *testing.T) {
	for name, taken := range map[string]int{"a free turn": 0, "a later turn": 1} {
		t.Run(name, func(t *testing.T) {
			limit := core.PerHour(1).Bucket(1)
			limiter := newLimiter(t, core.Options{Redis: redistest.Start(t).Client(t)})
			turns := newTurns(t, limiter, outgoing.Rule{Limit: limit, InFlight: 2, MaxWait: 10 * time.Hour})
			for range taken {
				call(t, turns, alice, outgoing.Answer{})
			}
			granted, answer := outgoing.AnswerLate(turns, taken == 1)
			ctx, leave := context.WithCancel(background)
			left := make(chan error)
			go func() {
				_, err := turns.Take(ctx, alice)
				left <- err
			}()
			<-granted
			leave()
			if err := <-left; !errors.Is(err, context.Canceled) {
				t.Errorf("Take: %v", err)
			}
			answer()
			bucket, slots := limiter.MustPacer("api", limit), limiter.MustSlots("api", 2)
			eventually(t, "only the calls that were sent are charged", func() bool {
				turn, err := bucket.Peek(background, alice)
				slot, failed := slots.Peek(background, alice)
				return err == nil && failed == nil && turn.ResetAfter <= time.Duration(taken)*time.Hour && slot.Remaining == 2
			})
		})
	}
}

// If the call that looks for pauses leaves, the next one that waits takes over.
func TestAnotherCallLooksForPauses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limiter, rule := newLimiter(t, core.Options{}), outgoing.Rule{Limit: core.PerHour(60).Bucket(1), MaxWait: time.Hour}
		turns, elsewhere := newTurns(t, limiter, rule), newTurns(t, limiter, rule)
		sent := take(t, elsewhere, alice)
		var leave [2]context.CancelFunc
		for i := range leave {
			var ctx context.Context
			ctx, leave[i] = context.WithCancel(background)
			go func() { _, _ = turns.Take(ctx, alice) }()
			time.Sleep(time.Second)
		}
		leave[0]()
		synctest.Wait()
		sent.Answered(outgoing.Answer{Wait: 3 * time.Second})
		time.Sleep(5 * time.Second)
		if !outgoing.SawAPause(turns, alice) {
			t.Error("nobody saw the pause")
		}
		leave[1]()
		synctest.Wait()
		if n := outgoing.Lines(turns); n != 0 {
			t.Errorf("there are %d lines", n)
		}
	})
}

// panicking is a handler of a log that panics at each warning.
type panicking struct{ slog.Handler }

// Enabled implements slog.Handler.
func (panicking) Enabled(_ context.Context, l slog.Level) bool { return l >= slog.LevelWarn }

// Handle implements slog.Handler.
func (panicking) Handle(context.Context, slog.Record) error { panic("of the log") }

// A log that panics while the first call in line is refused holds up no other call.
func TestALogThatPanicsHoldsUpNoLine(t *testing.T) {
	server := redistest.Start(t)
	limiter := newLimiter(t, core.Options{Redis: server.Client(t), Logger: slog.New(panicking{})})
	turns := newTurns(t, limiter, outgoing.Rule{InFlight: 1, MaxWait: time.Hour, OnStoreError: core.FailClosed})
	take(t, turns, alice)
	done := make(chan any)
	go func() {
		defer func() { done <- recover() }()
		_, _ = turns.Take(background, alice)
	}()
	eventually(t, "the call waits in line", func() bool { return outgoing.Lines(turns) == 1 })
	server.Kill()
	if panicked := <-done; panicked != "of the log" || outgoing.Lines(turns) != 0 {
		t.Errorf("the call ended with %v, and there are %d lines", panicked, outgoing.Lines(turns))
	}
}
