package promise

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/accesslimit/accesslimit/core"
)

// TakesTurns: a caller who reserves gets the wait until its turn, which comes when one permit is
// available; the rest of its cost delays the next caller. Turns come in the order of the reservations,
// whatever process they are from. A caller who would wait too long is refused and pays nothing. A caller who leaves early gets back the permits of its reservation,
// except as many as were reserved later.
func TakesTurns(t *testing.T, e Engine) {
	lab := e.newLab(t)
	t.Run("waits are exact", func(t *testing.T) {
		rapid.Check(t, func(rt *rapid.T) {
			steps := rapid.SliceOfN(plannedTurns, 1, 30).Draw(rt, "steps")
			if wrong := lab.play(t, func(l *core.Limiter) error {
				return turns(counter{limiter: l, name: "name", subject: "subject", limit: turnLimit}, steps)
			}); wrong != nil {
				rt.Fatal(wrong)
			}
		})
	})
	t.Run("Acquire waits for its turn", func(t *testing.T) { lab.bubble(t, acquireWaits) })
	t.Run("a wait that is too long costs nothing", func(t *testing.T) { lab.bubble(t, tooLate) })
	t.Run("who leaves early gives back", func(t *testing.T) { lab.bubble(t, leavesEarly) })
	t.Run("turns come in order", func(t *testing.T) { lab.bubble(t, lab.turnsInOrder) })
}

// turnLimit refills a permit every 100 ms.
var turnLimit = core.PerSecond(10).Bucket(4)

type plannedTurn struct {
	after    time.Duration
	n        int
	patience time.Duration // negative: Reserve
}

var plannedTurns = rapid.Custom(func(t *rapid.T) plannedTurn {
	return plannedTurn{
		after:    time.Duration(rapid.SampledFrom([]int{0, 0, 1, 99_999, 100_000, 350_001, 3_000_000}).Draw(t, "after")) * time.Microsecond,
		n:        rapid.SampledFrom([]int{1, 1, 2, 4, 5, 30, 100}).Draw(t, "n"),
		patience: time.Duration(rapid.SampledFrom([]int{-1, 0, 50_000, 700_000}).Draw(t, "patience")) * time.Microsecond,
	}
})

// turns compares reservations with the debt of a bucket, in microseconds of refill: a permit is
// 100,000 of them.
func turns(c counter, steps []plannedTurn) error {
	const permit, full = 100_000, 400_000
	used, last := int64(0), time.Now()
	for i, step := range steps {
		time.Sleep(step.after)
		used = max(0, used-time.Since(last).Microseconds())
		last = time.Now()
		d, err := step.ask(c)
		if err != nil {
			return err
		}
		wait := time.Duration(max(0, used+permit-full)) * time.Microsecond
		retry := time.Duration(0)
		if step.patience >= 0 {
			retry = max(0, wait-step.patience)
		}
		if retry == 0 {
			used += int64(step.n) * permit
		}
		left, reset := int(max(0, full-used)/permit), time.Duration(used)*time.Microsecond
		told := wait
		if step.patience >= 0 {
			told = 0 // it has already waited, or must not wait
		}
		if d.Allowed != (retry == 0) || d.RetryAfter != retry || d.Wait != told || d.Remaining != left || d.ResetAfter != reset {
			return fmt.Errorf("step %d, %+v: %s, want retry %v, wait %v, %d left, reset %v", i, step, fields(d), retry, wait, left, reset)
		}
		if retry == 0 && step.patience >= 0 { // it has waited
			used, last = max(0, used-wait.Microseconds()), time.Now()
		}
	}
	return nil
}

func (p plannedTurn) ask(c counter) (core.Decision, error) {
	if p.patience < 0 {
		return c.limiter.MustPacer(c.name, c.limit).Reserve(context.Background(), c.subject, p.n)
	}
	return c.limiter.MustPacer(c.name, c.limit).TryAcquire(context.Background(), c.subject, p.n, p.patience)
}

// bucketIn returns a counter of turnLimit in a bubble.
func bucketIn(t *testing.T, options core.Options) counter {
	return counter{t: t, limiter: newLimiter(t, options), prefix: options.Prefix, name: "name", subject: "subject", limit: turnLimit}
}

func (c counter) reserve(n int) core.Decision {
	c.t.Helper()
	d, err := c.limiter.MustPacer(c.name, c.limit).Reserve(context.Background(), c.subject, n)
	if err != nil || !d.Allowed {
		c.t.Fatalf("Reserve(%d): %+v, %v", n, d, err)
	}
	return d
}

// acquireWaits waits in two limiters. Five permits more than available take half a second.
func acquireWaits(t *testing.T, options core.Options) {
	c := bucketIn(t, options)
	begin := time.Now()
	for range 9 {
		if d, err := c.limiter.MustPacer(c.name, c.limit).Acquire(context.Background(), c.subject, 1); err != nil || !d.Allowed {
			t.Fatalf("Acquire: %+v, %v", d, err)
		}
	}
	if took := time.Since(begin); took != 500*time.Millisecond {
		t.Errorf("nine permits of a bucket of four, ten a second, took %v", took)
	}
}

func tooLate(t *testing.T, options core.Options) {
	c := bucketIn(t, options)
	c.reserve(40) // 3.6 s more than there is
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	begin := time.Now()
	d, err := c.limiter.MustPacer(c.name, c.limit).Acquire(ctx, c.subject, 1)
	if err != nil || d.Allowed || d.RetryAfter != 2700*time.Millisecond || time.Since(begin) != 0 {
		t.Fatalf("after %v: %+v, %v", time.Since(begin), d, err)
	}
	if d := c.reserve(1); d.Wait != 3700*time.Millisecond {
		t.Errorf("the turn after one that was too late comes in %v", d.Wait)
	}
}

// leavesEarly lets two callers wait behind a large reservation. When the first leaves, nobody's wait changes
// while the second waits, too.
func leavesEarly(t *testing.T, options core.Options) {
	c := bucketIn(t, options)
	c.reserve(4)
	ctx, leave := context.WithCancel(context.Background())
	left := make(chan error)
	go func() {
		// Its turn is in 100 ms.
		_, err := c.limiter.MustPacer(c.name, c.limit).Acquire(ctx, c.subject, 10)
		left <- err
	}()
	time.Sleep(50 * time.Millisecond)
	if d := c.reserve(3); d.Wait != 1050*time.Millisecond {
		t.Fatalf("behind ten permits the turn comes in %v", d.Wait)
	}
	leave()
	if err := <-left; !errors.Is(err, context.Canceled) {
		t.Errorf("the caller who left got %v", err)
	}
	time.Sleep(10 * time.Millisecond)
	// Of 4 + 10 + 3 permits none was given back yet, because three were reserved after the ten.
	if d := c.reserve(1); d.Wait != 1340*time.Millisecond {
		t.Errorf("ten permits were given up, with three reserved after them, and the next turn comes in %v", d.Wait)
	}
}

// turnsInOrder lets callers of two processes wait.
func (l *lab) turnsInOrder(t *testing.T, options core.Options) {
	c := bucketIn(t, options)
	processes := []*core.Limiter{c.limiter, l.others(t, options, c.limiter)()}
	c.reserve(4)
	order := make(chan int)
	for i := range 6 {
		go func() {
			if _, err := processes[i%2].MustPacer(c.name, c.limit).Acquire(context.Background(), c.subject, 1); err != nil {
				t.Error(err)
			}
			order <- i
		}()
		synctest.Wait() // until it waits
	}
	for want := range 6 {
		if got := <-order; got != want {
			t.Errorf("call %d has turn number %d", got, want)
		}
	}
}
