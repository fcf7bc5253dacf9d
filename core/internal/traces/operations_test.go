package traces

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/internal/algorithm"
)

// do does a step. The word says what became of it, unless the decision or the error does.
func (p *player) do(s *step) (d core.Decision, word string, err error) {
	ctx := context.Background()
	switch s.do {
	case "look":
		d, err = p.look()
	case "take N":
		d, err = p.take(s)
	case "take up to N":
		var granted int
		if granted, d, err = p.counter().AllowUpTo(ctx, subject, s.n); granted > 0 {
			word = fmt.Sprintf("takes %d", granted)
		}
	case "charge N":
		if d, err = p.counter().Charge(ctx, subject, s.n); err == nil {
			word = "charged"
		}
	case "turn N":
		d, err = p.turn(s)
	case "open N as X":
		var bill *core.Bill
		if bill, d, err = p.counter().Open(ctx, subject, s.n); err == nil && d.Allowed {
			p.bills[s.as], p.keeps = bill, true
		}
	case "hold as X":
		d, err = p.hold(s)
	default:
		if word, err = p.change(s); errors.Is(err, errName) {
			return d, "", err
		}
		var wrong error
		if d, wrong = p.look(); wrong != nil {
			err = wrong
		}
		return d, word, err
	}
	if s.as != "" && err == nil && d.Allowed {
		p.charges[s.as] = d
	}
	return d, word, err
}

// errName is the error of a name that no charge has.
var errName = errors.New("no such charge")

// change does what has no decision.
func (p *player) change(s *step) (word string, err error) {
	ctx := context.Background()
	word = "done"
	switch s.do {
	case "give back N of X":
		d, known := p.charges[s.of]
		if !known {
			return "", errName
		}
		err = p.limiter.Refund(ctx, d, s.n)
	case "add N to X":
		err = p.bills[s.of].Add(ctx, s.n)
	case "settle X at N":
		err = p.bills[s.of].Settle(ctx, s.n)
	case "cancel X":
		err = p.bills[s.of].Cancel(ctx)
	case "renew X", "release X":
		slot, known := p.slots[s.of]
		switch {
		case !known:
			return "", errName
		case s.do == "renew X":
			err = p.store.Change(ctx, &algorithm.Change{Kind: algorithm.Renews, Charges: []algorithm.Charge{slot.charge}})
		default:
			slot.release()
		}
	case "reset":
		var changed bool
		if changed, err = p.reset(); !changed {
			word = "was fresh"
		}
	}
	return word, err
}

func (p *player) reset() (changed bool, err error) {
	if p.isSlots() {
		return p.slotsOf().Reset(context.Background(), subject)
	}
	return p.counter().Reset(context.Background(), subject)
}

func (p *player) isSlots() bool { return algorithm.Kind(p.limit.Algorithm).OfLimit().Slots }

func (p *player) slotsOf() core.Slots {
	slots, _ := p.limiter.Slots(rule, p.limit.Max)
	return slots.LostAfter(p.limit.Window)
}

func (p *player) counter() core.Counter {
	var also []core.Limit
	if p.beside {
		also = append(also, besides)
	}
	counter, _ := p.limiter.Counter(rule, p.limit, also...)
	return counter.WithBills(p.terms)
}

func (p *player) look() (core.Decision, error) {
	if p.isSlots() {
		return p.slotsOf().Peek(context.Background(), subject)
	}
	return p.counter().Peek(context.Background(), subject)
}

func (p *player) take(s *step) (d core.Decision, err error) {
	ctx := context.Background()
	if s.note != "" {
		log, err := p.limiter.Log(rule, p.limit)
		if err != nil {
			return d, err
		}
		return log.AllowN(ctx, subject, s.n, s.note)
	}
	return p.counter().AllowN(ctx, subject, s.n)
}

// longestTurn is for how long a turn with patience may really be waited for.
const longestTurn = 10 * time.Millisecond

func (p *player) turn(s *step) (d core.Decision, err error) {
	pacer, err := p.limiter.Pacer(rule, p.limit)
	if err != nil {
		return d, err
	}
	if s.span == 0 {
		return pacer.Reserve(context.Background(), subject, s.n)
	}
	d, err = pacer.TryAcquire(context.Background(), subject, s.n, min(s.span, longestTurn))
	if err == nil {
		d.Wait = p.last.Wait
	}
	return d, err
}

func (p *player) hold(s *step) (core.Decision, error) {
	release, d, err := p.slotsOf().Hold(context.Background(), subject)
	if err == nil && d.Allowed {
		if before, held := p.slots[s.as]; held {
			before.release()
		}
		p.slots[s.as] = slot{release, p.store.slot}
	}
	return d, err
}
