package linearizable

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/accesslimit/accesslimit/core"
)

// history records the calls of concurrent clients. Its clock counts calls and returns.
type history struct {
	t     *testing.T
	clock atomic.Int64
	slots atomic.Int64 // numbers the holds and the bills

	mutex sync.Mutex
	ops   []porcupine.Operation
	bills []opened
}

// record makes a call, and records it unless it is known to have had no effect.
func (h *history) record(c call, do func() (outcome, error)) (ok bool) {
	called := h.clock.Add(1)
	o, err := do()
	returned := h.clock.Add(1)
	var failed *core.StoreError
	switch {
	case errors.Is(err, core.ErrDebtExceeded):
		o.above = true
	case errors.Is(err, core.ErrBillSettled):
		o.ended = true
	case errors.As(err, &failed) && !failed.Class.MayHaveCharged():
		return false
	case errors.As(err, &failed), errors.Is(err, context.DeadlineExceeded):
		if c.do == peek {
			return false
		}
		h.add(c, outcome{unknown: true}, called, math.MaxInt64)
		if c.do == hold { // the limiter releases what nobody holds
			c.do = release
			h.add(c, outcome{unknown: true}, called, math.MaxInt64)
		}
		return false
	case err != nil:
		h.t.Errorf("%+v: %v", c, err)
	}
	h.add(c, o, called, returned)
	return true
}

func (h *history) add(c call, o outcome, called, returned int64) {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	h.ops = append(h.ops, porcupine.Operation{Input: c, Output: o, Call: called, Return: returned})
}

// client calls one limiter, as one goroutine of a process.
type client struct {
	*history
	limiter *core.Limiter
	limit   core.Limit
	mode    mode
	charged []charged
	held    []held
}

// charged is a charge that can be given back.
type charged struct {
	call
	core.Decision
}

// held is a slot that can be released.
type held struct {
	call
	release func()
}

// act makes one call of a random kind. Some contexts end before the answer comes.
func (c *client) act(subject string) {
	ctx := context.Background()
	if rand.N(16) == 0 {
		ending, cancel := context.WithTimeout(ctx, rand.N(2*time.Millisecond))
		defer cancel()
		ctx = ending
	}
	q := call{do: c.choose(), subject: subject, n: 1}
	switch q.do {
	case refund:
		c.refund(ctx)
	case hold:
		q.slot = int(c.slots.Add(1))
		c.hold(ctx, q)
	case open:
		q.slot, q.n = int(c.slots.Add(1)), 1+rand.N(4)
		c.open(ctx, q)
	case add, settle:
		c.change(ctx, q.do)
	case release:
		c.release()
	case peek:
		c.ask(ctx, q)
	default:
		q.n += rand.N(4)
		c.ask(ctx, q)
	}
}

// choose returns one of the actions that are possible now.
func (c *client) choose() action {
	all := []action{allow, allow, allow, allowUpTo, peek}
	switch {
	case c.limit.Algorithm == core.Concurrency:
		all = []action{hold, hold, peek}
	case c.owes():
		all = append(all, charge)
	}
	if c.mode == withBills {
		all = append(all, open, open, add, settle, settle)
	}
	if len(c.charged) > 0 {
		all = append(all, refund, refund)
	}
	if len(c.held) > 0 {
		all = append(all, release, release)
	}
	return all[rand.N(len(all))]
}

// owes reports whether the client's counter may be in debt: SlidingLog cannot be, and a TokenBucket
// in debt gives back no earlier charge, as if the debt had been reserved behind it.
func (c *client) owes() bool {
	switch c.limit.Algorithm {
	case core.SlidingLog:
		return false
	case core.TokenBucket:
		return c.mode != withRefunds
	}
	return true
}

// ask makes a call that returns a Decision.
func (c *client) ask(ctx context.Context, q call) {
	var d core.Decision
	ok := c.record(q, func() (o outcome, err error) {
		d, o.granted, err = c.decide(ctx, q)
		return o.of(d), err
	})
	if ok && c.mode == withRefunds && q.do == allow && d.Allowed {
		c.charged = append(c.charged, charged{q, d})
	}
}

func (c *client) decide(ctx context.Context, q call) (d core.Decision, granted int, err error) {
	if c.limit.Algorithm == core.Concurrency {
		d, err = c.slotsOf().Peek(ctx, q.subject)
		return d, 0, err
	}
	counter := c.counter()
	switch q.do {
	case allow:
		d, err = counter.AllowN(ctx, q.subject, q.n)
	case allowUpTo:
		granted, d, err = counter.AllowUpTo(ctx, q.subject, q.n)
	case charge:
		d, err = counter.Charge(ctx, q.subject, q.n)
	case peek:
		d, err = counter.Peek(ctx, q.subject)
	}
	return d, granted, err
}

func (c *client) counter() core.Counter {
	return c.limiter.MustCounter("name", c.limit)
}

func (o outcome) of(d core.Decision) outcome {
	o.allowed, o.remaining, o.repeated = d.Allowed, d.Remaining, d.Source == core.FromDenyCache
	return o
}

// refund gives back one of the client's charges.
func (c *client) refund(ctx context.Context) {
	of := c.charged[0]
	c.charged = c.charged[1:]
	of.do = refund
	c.record(of.call, func() (o outcome, err error) {
		o.allowed = true
		return o, c.limiter.Refund(ctx, of.Decision, of.n)
	})
}

func (c *client) slotsOf() core.Slots {
	return c.limiter.MustSlots("name", c.limit.Max).LostAfter(c.limit.Window)
}

// hold takes a slot.
func (c *client) hold(ctx context.Context, q call) {
	slot := held{call: q}
	if c.record(q, func() (outcome, error) {
		release, d, err := c.slotsOf().Hold(ctx, q.subject)
		slot.release = release
		return outcome{}.of(d), err
	}) {
		c.held = append(c.held, slot)
	}
}

// release releases one of the client's slots. If that fails, the limiter tries again later, so the
// release may take effect at any time after it began.
func (c *client) release() {
	slot := c.held[0]
	c.held = c.held[1:]
	slot.do = release
	errorsBefore, called := c.storeErrors(), c.clock.Add(1)
	slot.release()
	returned := c.clock.Add(1)
	if c.storeErrors() != errorsBefore {
		returned = math.MaxInt64
	}
	c.add(slot.call, outcome{answer: answer{allowed: true}}, called, returned)
}

// storeErrors returns how often Redis did not answer the client's limiter.
func (c *client) storeErrors() (sum uint64) {
	for _, n := range c.limiter.Stats().StoreErrors {
		sum += n
	}
	return sum
}
