package promise

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/accesslimit/accesslimit/core"
)

// InFlight: however many goroutines and clients take slots at once, never more than Max are held. A
// slot is free again when it is released, or exactly one Window after its holder last renewed it.
func InFlight(t *testing.T, e Engine) {
	t.Run("never more than Max", func(t *testing.T) { neverMoreInFlight(t, e) })
	lab := e.newLab(t)
	t.Run("a living holder keeps its slot", func(t *testing.T) { lab.bubble(t, livingHolder) })
	t.Run("a dead holder's slot comes back", func(t *testing.T) { lab.bubble(t, deadHolder) })
	t.Run("another Max holds at once", func(t *testing.T) { lab.bubble(t, otherMaxInFlight) })
	t.Run("a slot that was lost is taken again", func(t *testing.T) { lab.bubble(t, lostSlot) })
}

func neverMoreInFlight(t *testing.T, e Engine) {
	limiters := e.limiters(t, 3)
	limit := core.InFlight(5)
	var held, most, taken atomic.Int64
	together(48, func(goroutine int) {
		for range 20 {
			release, d, err := limiters[goroutine%3].MustSlots("name", limit.Max).Hold(context.Background(), "subject")
			if err != nil {
				t.Error(err)
			}
			if d.Allowed {
				taken.Add(1)
				now := held.Add(1)
				for was := most.Load(); now > was && !most.CompareAndSwap(was, now); was = most.Load() {
				}
				held.Add(-1)
			}
			release()
		}
	})
	if most.Load() > 5 || taken.Load() < 5 {
		t.Errorf("%d slots were held at once, of 5; %d were taken in all", most.Load(), taken.Load())
	}
	(counter{t: t, limiter: limiters[0], name: "name", subject: "subject", limit: limit}).wantLeft(5)
}

// flight returns a limit of one call at once on a limiter in a bubble.
func flight(t *testing.T, options core.Options) counter {
	return counter{t: t, limiter: newLimiter(t, options), prefix: options.Prefix, name: "name", subject: "subject", limit: core.InFlight(1)}
}

// hold takes a slot and fails the test if there is none.
func (c counter) hold() (release func()) {
	c.t.Helper()
	release, d, err := c.limiter.MustSlots(c.name, c.limit.Max).LostAfter(c.limit.Window).Hold(context.Background(), c.subject)
	if err != nil || !d.Allowed {
		c.t.Fatalf("Hold(%v): %+v, %v", c.limit, d, err)
	}
	return release
}

// wantNoSlot checks that there is no slot, and that the wait is at most this long.
func (c counter) wantNoSlot(most time.Duration) {
	c.t.Helper()
	release, d, err := c.limiter.MustSlots(c.name, c.limit.Max).LostAfter(c.limit.Window).Hold(context.Background(), c.subject)
	release()
	if err != nil || d.Allowed || d.RetryAfter <= 0 || d.RetryAfter > most {
		c.t.Fatalf("there is a slot, or the wait for one exceeds %v: %+v, %v", most, d, err)
	}
}

func livingHolder(t *testing.T, options core.Options) {
	c := flight(t, options)
	release := c.hold()
	for range 40 {
		c.wantNoSlot(c.limit.Window)
		time.Sleep(c.limit.Window / 4)
	}
	release()
	release()
	c.wantLeft(1)
	c.hold()()
	c.wantLeft(1)
}

// deadHolder closes the limiter that holds a slot. The slot is no longer renewed, as if the process
// had died.
func deadHolder(t *testing.T, options core.Options) {
	if options.Redis == nil {
		t.Log("in process, a holder dies together with the counters")
		return
	}
	c := flight(t, options)
	dying, err := core.New(options)
	if err != nil {
		t.Fatal(err)
	}
	c.limiter, dying = dying, c.limiter
	c.hold()
	c.limiter.Close()
	c.limiter = dying
	time.Sleep(c.limit.Window - time.Microsecond)
	c.wantNoSlot(time.Microsecond)
	time.Sleep(time.Microsecond)
	c.hold()()
	c.wantLeft(1)
}

// lostSlot deletes the counter while a slot is held, as a failover may. The next renewal restores
// the slot.
func lostSlot(t *testing.T, options core.Options) {
	c := flight(t, options)
	release := c.hold()
	if _, err := c.limiter.MustSlots(c.name, c.limit.Max).LostAfter(c.limit.Window).Reset(context.Background(), c.subject); err != nil {
		t.Fatal(err)
	}
	c.wantLeft(1)
	time.Sleep(c.limit.Window/3 + time.Second)
	c.wantNoSlot(c.limit.Window)
	release()
	c.wantLeft(1)
}

// otherMaxInFlight uses two processes with different limits. Each refuses by its own, and both
// count all slots.
func otherMaxInFlight(t *testing.T, options core.Options) {
	c := flight(t, options)
	lower, higher := c.by(core.InFlight(2)), c.by(core.InFlight(4))
	releases := []func(){higher.hold(), higher.hold(), higher.hold()}
	lower.wantNoSlot(c.limit.Window)
	higher.wantLeft(1)
	releases[0]()
	lower.wantNoSlot(c.limit.Window)
	releases[1]()
	lower.hold()()
	releases[2]()
	lower.wantLeft(2)
}
