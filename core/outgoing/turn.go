package outgoing

import (
	"context"
	"sync"
	"time"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
	"github.com/accesslimit/accesslimit/core/internal/inflight"
	"github.com/accesslimit/accesslimit/core/internal/panics"
)

// Turn is the permission to send one call. It is safe for concurrent use.
type Turn struct {
	turns *Turns
	key   string
	slot  slot
	ctx   context.Context // of the call, for reports

	mu       sync.Mutex
	answered bool
	released bool
	stop     []func() bool    // ends what ReleaseAfter began
	probe    algorithm.Charge // the place of the first call after a pause; its Cost is 0 if there is none
}

// slot is what a call holds while it is in flight. It holds nothing if there is no limit of calls in
// flight, or if none was counted.
type slot struct{ *inflight.Hold }

func (t *Turns) hold(taken algorithm.Charge) slot {
	if taken.Cost == 0 {
		return slot{}
	}
	return slot{t.parts.InFlight.Hold([]algorithm.Charge{taken})}
}

func (s slot) release() {
	if s.Hold != nil {
		s.Release()
	}
}

// Answer is what a server said about its limits.
type Answer struct {
	// Refused reports whether the server refused the call because of a limit.
	Refused bool
	// Wait is how long the server wants no calls, or 0 if it did not say. Refusals without it lead to
	// pauses of a second, two seconds, and so on up to MaxPause, until a call is answered.
	Wait time.Duration
}

// Answered reports what the server said, as soon as that is known. It returns when a pause is
// recorded, even if the call's context has ended meanwhile. A stream may report again. A call that was
// not answered is not reported.
func (t *Turn) Answered(a Answer) { t.answer(t.key, a) }

// answer is Answered for an answer that is about a key.
func (t *Turn) answer(key string, a Answer) {
	t.follow(key, a)
	if a.Refused {
		t.refused(key, a)
	}
}

// follow begins a pause, or ends the time after one.
func (t *Turn) follow(key string, a Answer) {
	t.mu.Lock()
	first, released := !t.answered, t.released
	t.answered = true
	t.mu.Unlock()
	if a.Refused || a.Wait > 0 {
		t.turns.pause(key, a)
	}
	if a.Refused && key != t.key { // the rule and the server may have different names for a quota
		t.turns.pause(t.key, a)
	}
	if !first || t.probe.Cost == 0 {
		return
	}
	t.turns.parts.Store.InBackground(func() { // the caller need not wait for it
		if !a.Refused {
			t.turns.answeredAgain(t.key)
		}
		if !released {
			t.freePlace()
		}
	})
}

// Release ends the call, and gives its slot back. It does nothing the second time. It returns within
// Options.Timeout, or twice that if the slot is just being renewed.
func (t *Turn) Release() {
	t.mu.Lock()
	first, answered, stop := !t.released, t.answered, t.stop
	t.released = true
	t.mu.Unlock()
	if !first {
		return
	}
	for _, stop := range stop {
		stop()
	}
	if t.probe.Cost > 0 && !answered {
		t.freePlace()
	}
	t.slot.release()
	t.turns.lines.wake(t.key)
}

// ReleaseAfter releases the turn when a context ends, unless Release does so earlier.
func (t *Turn) ReleaseAfter(ctx context.Context) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.released {
		t.stop = append(t.stop, context.AfterFunc(ctx, panics.Guard(t.Release, t.turns.parts.Log.Panicked)))
	}
}

// freePlace lets another call be the probe.
func (t *Turn) freePlace() {
	_ = t.turns.parts.Store.Change(context.Background(), &algorithm.Change{Charges: []algorithm.Charge{t.probe}})
	t.turns.lines.wake(t.key)
}
