package outgoing_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/outgoing"
	"github.com/accesslimit/accesslimit/internal/redistest"
)

// A pause holds for all processes, and only for its key.
func TestOneUsersPauseNeverStopsAnother(t *testing.T) {
	onEveryDeployment(t, func(t *testing.T, options core.Options) {
		turns := newTurns(t, newLimiter(t, options), outgoing.Rule{MaxWait: time.Second})
		other := turns
		if options.Redis != nil {
			other = newTurns(t, newLimiter(t, options), outgoing.Rule{MaxWait: time.Second})
		}
		call(t, turns, alice, refused(time.Minute))
		for _, of := range []*outgoing.Turns{turns, other} {
			if wait := wantWait(t, of, alice, 0); !wait.Paused || wait.Wait > time.Minute || wait.Wait < 30*time.Second {
				t.Errorf("the error is %+v", wait)
			}
			call(t, of, bob, outgoing.Answer{})
		}
	})
}

// No call is sent after a pause was recorded, although many processes ask all the time.
func TestNoCallIsSentAfterAPauseWasRecorded(t *testing.T) {
	server := redistest.Start(t)
	var sent atomic.Int64
	var rounds [30]atomic.Int64 // of each worker
	var workers sync.WaitGroup
	var processes []*outgoing.Turns
	for range 3 {
		rule := outgoing.Rule{InFlight: 30, MaxWait: 10 * time.Second, Limit: core.PerSecond(300).Bucket(10)}
		processes = append(processes, newTurns(t, newLimiter(t, core.Options{Redis: server.Client(t)}), rule))
	}
	ctx, stop := context.WithCancel(background)
	for i := range rounds {
		workers.Go(func() {
			for ; ctx.Err() == nil; rounds[i].Add(1) {
				if turn, err := processes[i%3].Take(ctx, alice); err == nil {
					sent.Add(1)
					turn.Release()
				}
			}
		})
	}
	eventually(t, "calls are sent", func() bool { return sent.Load() > 100 })
	take(t, processes[0], alice).Answered(refused(time.Hour))
	for i := range rounds { // a call that got its turn before the pause may not have been counted yet
		begun := rounds[i].Load()
		eventually(t, "the calls that asked before are counted", func() bool { return rounds[i].Load() > begun })
	}
	before := sent.Load()
	for _, p := range processes {
		for range 100 {
			if wait := wantWait(t, p, alice, 0); !wait.Paused {
				t.Fatalf("the error is %+v", wait)
			}
		}
	}
	stop()
	workers.Wait()
	if after := sent.Load(); after != before {
		t.Errorf("%d calls were sent during the pause", after-before)
	}
}

// A shorter wait never replaces a longer one, and none is above MaxPause.
func TestTheLaterEndWins(t *testing.T) {
	virtually(t, outgoing.Rule{MaxWait: time.Second, MaxPause: time.Hour}, func(t *testing.T, turns *outgoing.Turns) {
		first, second, third := take(t, turns, alice), take(t, turns, alice), take(t, turns, alice)
		first.Answered(refused(time.Minute))
		second.Answered(refused(10 * time.Second))
		wantWait(t, turns, alice, time.Minute)
		third.Answered(outgoing.Answer{Wait: 2 * time.Minute})
		wantWait(t, turns, alice, 2*time.Minute)
		take(t, turns, bob).Answered(refused(365 * 24 * time.Hour))
		wantWait(t, turns, bob, time.Hour)
		if s := turns.Stats(); s.Refused != 3 || s.Pauses != 3 || s.GaveUp != 3 {
			t.Errorf("the counts are %+v", s)
		}
	})
}

// A pause without a refusal ends by itself, in whole microseconds of the store's clock: calls wait for
// it, and never come early.
func TestAnAnnouncedPauseEndsByItself(t *testing.T) {
	virtually(t, outgoing.Rule{}, func(t *testing.T, turns *outgoing.Turns) {
		call(t, turns, alice, outgoing.Answer{Wait: 1500 * time.Microsecond})
		began := time.Now()
		for range 5 {
			call(t, turns, alice, outgoing.Answer{})
		}
		if took := time.Since(began); took < 1500*time.Microsecond || took > 1500*time.Microsecond*11/10 {
			t.Errorf("the calls waited for %v", took)
		}
	})
}

// A refusal without a hint pauses for a second, then for two, and so on, and again for a second after
// an answer. Refusals of calls that were in flight together count once. After each pause there is a probe.
func TestPausesWithoutAHintGrow(t *testing.T) {
	virtually(t, outgoing.Rule{MaxWait: time.Millisecond, MaxPause: 5 * time.Second}, func(t *testing.T, turns *outgoing.Turns) {
		for _, want := range []time.Duration{time.Second, 2 * time.Second, 4 * time.Second, 5 * time.Second} {
			flight := []*outgoing.Turn{take(t, turns, alice)}
			if want == time.Second {
				flight = append(flight, take(t, turns, alice), take(t, turns, alice))
			} else {
				wantWait(t, turns, alice, 0) // for the probe
			}
			for _, turn := range flight {
				turn.Answered(refused(0))
				turn.Release()
			}
			wantWait(t, turns, alice, want)
			time.Sleep(want)
		}
		call(t, turns, alice, outgoing.Answer{})
		time.Sleep(time.Second)
		call(t, turns, alice, refused(0))
		wantWait(t, turns, alice, time.Second)
	})
}

// After a pause, one call is sent. The others follow when the server has answered it, at the rate of
// the bucket.
func TestOneProbeThenASlowStart(t *testing.T) {
	virtually(t, outgoing.Rule{Limit: core.PerSecond(10).Bucket(50), InFlight: 10, MaxWait: time.Hour}, func(t *testing.T, turns *outgoing.Turns) {
		call(t, turns, alice, refused(time.Minute))
		sent := make(chan *outgoing.Turn)
		for range 5 {
			go func() { sent <- take(t, turns, alice) }()
		}
		probe := <-sent
		select {
		case <-sent:
			t.Fatal("two probes were sent")
		case <-time.After(5 * time.Second):
		}
		began := time.Now()
		probe.Answered(outgoing.Answer{})
		for range 4 {
			(<-sent).Release()
		}
		if took := time.Since(began); took < 300*time.Millisecond || took > time.Second {
			t.Errorf("4 calls followed within %v", took)
		}
		probe.Release()
	})
}

// The place of a probe is free when the call has failed, and 10 seconds after it began if nobody
// knows what has become of it.
func TestAProbeThatDoesNotReturnFreesItsPlace(t *testing.T) {
	virtually(t, outgoing.Rule{MaxWait: 5 * time.Second}, func(t *testing.T, turns *outgoing.Turns) {
		call(t, turns, alice, refused(time.Second))
		take(t, turns, alice).Release()
		lost := take(t, turns, alice)
		wantWait(t, turns, alice, 0)
		time.Sleep(5 * time.Second)
		call(t, turns, alice, outgoing.Answer{})
		lost.Answered(outgoing.Answer{})
		call(t, turns, alice, outgoing.Answer{})
	})
}

// Every pause has an end, also in Redis.
func TestThePauseHasATimeToLive(t *testing.T) {
	client := redistest.Start(t).Client(t)
	turns := newTurns(t, newLimiter(t, core.Options{Redis: client}), outgoing.Rule{MaxPause: time.Minute})
	call(t, turns, alice, refused(time.Minute))
	keys := client.Keys(background, "*ps1*").Val()
	if len(keys) != 1 {
		t.Fatalf("the keys are %q", keys)
	}
	if lives := client.PTTL(background, keys[0]).Val(); lives <= time.Minute || lives > 2*time.Minute+time.Second {
		t.Errorf("the pause is kept for %v", lives)
	}
}

// A turn keeps a copy of its key, which a framework may have lent for one call only.
func TestALentKeyIsCopied(t *testing.T) {
	turns, room := newTurns(t, newLimiter(t, core.Options{}), outgoing.Rule{}), []byte(alice)
	turn := take(t, turns, unsafe.String(&room[0], len(room)))
	copy(room, "overwritten")
	turn.Answered(outgoing.Answer{Refused: true, Wait: time.Hour})
	turn.Release()
	ctx, leave := context.WithTimeout(background, patient)
	defer leave()
	var wait *outgoing.WaitError
	if _, err := turns.Take(ctx, alice); !errors.As(err, &wait) || !wait.Paused {
		t.Errorf("%v, want the pause that the server asked for", err)
	}
}
