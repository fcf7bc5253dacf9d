package promise

import (
	"context"
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/accesslimit/accesslimit/core"
)

// HonestRetryAfter: a caller who is refused and waits for RetryAfter passes if nobody else charges.
// One microsecond earlier, the call would be refused. With a SlidingWindow, RetryAfter may be
// Window/32 longer than with an exact count. When ResetAfter is over, to the microsecond, the
// counter equals a fresh one.
func HonestRetryAfter(t *testing.T, e Engine) {
	lab := e.newLab(t)
	eachAlgorithm(t, func(t *testing.T, f facts) {
		rapid.Check(t, func(rt *rapid.T) {
			limit := rapid.SampledFrom(f.limits()).Draw(rt, "limit")
			steps := traces(limit, false).Draw(rt, "trace")
			var wrong error
			lab.bubble(t, func(t *testing.T, options core.Options) {
				limiter := newLimiter(t, options)
				w := waiter{player{limiter: limiter, name: "name", subject: "subject"}, lab.others(t, options, limiter), f, nil}
				wrong = w.plays(steps, limit.Limit)
			})
			if wrong != nil {
				rt.Fatal(wrong)
			}
		})
	})
}

// waiter plays a trace, and waits for RetryAfter whenever it is refused.
type waiter struct {
	player
	another func() *core.Limiter // returns a limiter of another process, which does not know the refusal and has to ask
	facts
	admitted []admission
}

func (w *waiter) plays(steps trace, limit core.Limit) error {
	for i, s := range steps {
		if err := w.step(s); err != nil {
			return s.failed(i, err)
		}
	}
	return w.resets(limit)
}

func (w *waiter) step(s step) error {
	if s.do == reset {
		w.admitted = nil
	}
	d, err := w.play(s)
	switch {
	case err != nil:
		return err
	case s.do != allow:
		return nil
	case d.Allowed && d.RetryAfter != 0:
		return fmt.Errorf("allowed, and told to wait: %+v", d)
	case d.Allowed:
		w.note(s)
		return nil
	}
	return w.wait(s, d.RetryAfter)
}

func (w *waiter) note(s step) {
	w.admitted = append(w.admitted, admission{time.Now(), s.cost()})
}

// wait repeats the refused step twice: at the last moment when it must be refused, and when it must
// pass.
func (w *waiter) wait(s step, told time.Duration) error {
	slack := w.slack(s.by)
	if most := w.full(s.by); told <= 0 || told > most {
		return fmt.Errorf("told to wait %v, of which no more than %v can help", told, most)
	}
	passes := time.Now().Add(told)
	if early := told - slack - time.Microsecond; early > 0 {
		s.wait = wait{more: early}
		elsewhere := player{limiter: w.another(), name: w.name, subject: w.subject}
		for _, p := range []*player{&w.player, &elsewhere} {
			d, err := p.play(s)
			if err != nil || d.Allowed {
				return fmt.Errorf("told to wait %v, and passed after %v: %+v, %w", told, early, d, err)
			}
			s.wait = wait{}
		}
		if slack > 0 && !w.over(s) {
			return fmt.Errorf("told to wait %v, of which an exact count would not have asked for the last %v", told, slack+time.Microsecond)
		}
	}
	s.wait = wait{more: time.Until(passes)}
	d, err := w.play(s)
	if err != nil || !d.Allowed {
		return fmt.Errorf("told to wait %v, and refused after that: %+v, %w", told, d, err)
	}
	w.note(s)
	return nil
}

// over reports whether a step exceeds the limit, by an exact count of what was admitted in the last
// Window.
func (w *waiter) over(s step) bool {
	sum := int64(s.cost())
	for _, a := range w.admitted {
		if time.Since(a.at) < s.by.Window {
			sum += int64(a.permits)
		}
	}
	return sum > int64(s.by.Max)
}

// resets waits until the counter is fresh.
func (w *waiter) resets(limit core.Limit) error {
	peek := func() core.Decision {
		d, _ := w.limiter.MustCounter(w.name, limit).Peek(context.Background(), w.subject)
		return d
	}
	d := peek()
	if d.ResetAfter == 0 {
		return nil
	}
	time.Sleep(d.ResetAfter - time.Microsecond)
	if early := peek(); early.ResetAfter != time.Microsecond {
		return fmt.Errorf("fresh in %v, and a microsecond before the end of that: %+v", d.ResetAfter, early)
	}
	time.Sleep(time.Microsecond)
	if fresh := peek(); fresh.ResetAfter != 0 || fresh.Remaining != atOnce(limit) {
		return fmt.Errorf("fresh in %v, and after that: %+v", d.ResetAfter, fresh)
	}
	return nil
}
