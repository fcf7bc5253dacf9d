package outgoing_test

import (
	"errors"
	"testing"
	"time"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/operate"
	"github.com/accesslimit/accesslimit/core/outgoing"
	"github.com/accesslimit/accesslimit/internal/limitertest"
	"github.com/accesslimit/accesslimit/internal/redistest"
)

// While Redis is away, a process counts turns by its share of the rate.
func TestTurnsAreCountedLocally(t *testing.T) {
	rule := outgoing.Rule{Limit: core.PerHour(4).Bucket(4), OnStoreError: core.CountLocally(0.5), MaxWait: time.Second}
	turns := newTurns(t, newLimiter(t, limitertest.DeadRedis(t)), rule)
	for range 2 {
		call(t, turns, alice, outgoing.Answer{})
	}
	wantWait(t, turns, alice, 0)
}

// A pause that began while Redis was away is recorded when it is back, for all processes. One whose calls go
// on meanwhile does not forget it before.
func TestCallsDoNotForgetAPauseThatIsNotRecordedYet(t *testing.T) {
	server := redistest.Start(t)
	var processes []*outgoing.Turns
	for range 2 {
		processes = append(processes, newTurns(t, newLimiter(t, core.Options{Redis: server.Client(t)}), outgoing.Rule{MaxWait: time.Second}))
	}
	turn := take(t, processes[0], alice)
	server.Kill()
	turn.Answered(refused(time.Hour))
	server.Restart()
	eventually(t, "the other process sees the pause", func() bool {
		if wait := wantWait(t, processes[0], alice, 0); !wait.Paused {
			t.Fatalf("the process that knows the pause: %v", wait)
		}
		turn, err := processes[1].Take(background, alice)
		if err == nil {
			turn.Release()
		}
		var wait *outgoing.WaitError
		return errors.As(err, &wait) && wait.Paused
	})
}

// A pause that began, or was made longer, while Redis was away is counted then, and not again when it is
// recorded. Operators see it in the process that knows it.
func TestPausesAreCountedWhileRedisIsAway(t *testing.T) {
	server := redistest.Start(t)
	limiter := newLimiter(t, core.Options{Redis: server.Client(t)})
	turns := newTurns(t, limiter, outgoing.Rule{MaxPause: time.Hour})
	var flight []*outgoing.Turn
	for range 3 {
		flight = append(flight, take(t, turns, alice))
	}
	server.Kill()
	for i, wait := range []time.Duration{10 * time.Minute, time.Minute, time.Hour} {
		flight[i].Answered(refused(wait))
	}
	if known, err := operate.New(limiter).KnownBans(""); err != nil || len(known) != 1 || known[0].Subject != alice || known[0].Cause != "paused by the server" {
		t.Errorf("known here are %v, %v", known, err)
	}
	if s := turns.Stats(); s.Pauses != 2 {
		t.Errorf("%d pauses are counted, want one that began and was made longer", s.Pauses)
	}
	server.Restart()
	eventually(t, "no pause is to be recorded", func() bool { return outgoing.Unrecorded(turns) == 0 })
	if s := turns.Stats(); s.Pauses != 2 {
		t.Errorf("%d pauses are counted once they are recorded", s.Pauses)
	}
}

// Once a limiter is closed, it tries once more to record a pause, however long that would last.
func TestAClosedLimiterRecordsNoPause(t *testing.T) {
	server := redistest.Start(t)
	limiter := newLimiter(t, core.Options{Redis: server.Client(t)})
	turns := newTurns(t, limiter, outgoing.Rule{MaxPause: time.Hour})
	turn := take(t, turns, alice)
	server.Kill()
	turn.Answered(refused(time.Hour))
	if n := outgoing.Unrecorded(turns); n != 1 {
		t.Errorf("%d pauses are to be recorded", n)
	}
	limiter.Close()
	eventually(t, "no pause is to be recorded", func() bool { return outgoing.Unrecorded(turns) == 0 })
}

// A Redis that answers, but cannot write, is not asked over and over until a turn is free.
func TestARedisThatCannotWriteIsNotAskedOverAndOver(t *testing.T) {
	for name, policy := range map[string]core.StorePolicy{"open": core.FailOpen, "closed": core.FailClosed} {
		t.Run(name, func(t *testing.T) {
			server := redistest.Start(t)
			limiter := newLimiter(t, core.Options{Redis: server.Client(t)})
			turns := newTurns(t, limiter, outgoing.Rule{Limit: core.PerMinute(20).Bucket(1), InFlight: 5, MaxWait: time.Minute, OnStoreError: policy})
			call(t, turns, alice, outgoing.Answer{})
			if err := server.Client(t).ConfigSet(background, "maxmemory", "1").Err(); err != nil {
				t.Fatal(err)
			}
			before := server.Calls("evalsha")
			turn, err := turns.Take(background, alice)
			if policy == core.FailOpen && err == nil {
				turn.Release()
			} else if policy == core.FailOpen || !errors.Is(err, core.ErrStore) {
				t.Errorf("Take: %v", err)
			}
			if n := server.Calls("evalsha") - before; n > 20 {
				t.Errorf("it was asked %d times", n)
			}
		})
	}
}

// The answer to a probe does not wait for a Redis that hangs: it came from another server.
func TestTheAnswerToAProbeDoesNotWaitForRedis(t *testing.T) {
	server := redistest.Start(t)
	limiter := newLimiter(t, core.Options{Redis: server.Client(t)})
	turns := newTurns(t, limiter, outgoing.Rule{})
	call(t, turns, alice, refused(time.Second))
	probe := take(t, turns, alice)
	server.Stop()
	defer server.Continue()
	if probe.Answered(outgoing.Answer{}); len(limiter.Stats().StoreErrors) > 0 {
		t.Error("the answer waited until the store had failed")
	}
}
