package promise

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/accesslimit/accesslimit/core"
)

// ReturnsByDeadline: a call returns by Timeout, or by its caller's deadline if that is earlier,
// even if no server answers or the client has not connected yet, and whatever the client's own
// timeouts are. The end of Timeout is a failure of the store. The caller's deadline is the end of
// its context.
func ReturnsByDeadline(t *testing.T, e Engine) {
	if e.inProcess() {
		return // there is nobody to wait for
	}
	for _, warm := range []bool{true, false} {
		t.Run(fmt.Sprintf("connected %v", warm), func(t *testing.T) {
			options := e.hanging(t)
			if warm {
				connect(t, options)
			}
			waits := newTimed(t, options) // for a caller's own deadline, because Timeout is longer
			options.Timeout = storeTimeout
			hurries := newTimed(t, options)
			e.stop()
			defer e.resume(t, options.Redis)
			together(32, func(i int) {
				if i%2 == 0 {
					waits.inTime(t, fmt.Sprint(i), true)
					return
				}
				hurries.inTime(t, fmt.Sprint(i), false)
			})
		})
	}
}

// timed is what must return in time: a limiter, and a guard.
type timed struct {
	limiter *core.Limiter
	guard   *watchedGuard
}

func newTimed(t *testing.T, options core.Options) timed {
	return timed{newLimiter(t, options), watchGuard(t, options, ruleOf("name", core.PerDay(100)))}
}

// connect opens enough connections for many calls at once.
func connect(t *testing.T, options core.Options) {
	options.Timeout = patient
	limiter := newLimiter(t, options)
	together(32, func(i int) {
		if _, err := limiter.MustCounter("name", core.PerDay(100)).Allow(context.Background(), fmt.Sprint(i)); err != nil {
			t.Error(err)
		}
	})
}

// inTime makes each kind of call, and checks that it returns, and how: with the servers stopped, only a
// deadline ends it.
func (s timed) inTime(t *testing.T, subject string, byCallersDeadline bool) {
	limit := core.PerDay(100)
	for what, call := range map[string]func(ctx context.Context) error{
		"Allow": func(ctx context.Context) error {
			_, err := s.limiter.MustCounter("name", limit).Allow(ctx, subject)
			return err
		},
		"Peek": func(ctx context.Context) error {
			_, err := s.limiter.MustCounter("name", limit).Peek(ctx, subject)
			return err
		},
		"Reset": func(ctx context.Context) error {
			_, err := s.limiter.MustCounter("name", limit).Reset(ctx, subject)
			return err
		},
		"Check": func(ctx context.Context) error { return guarded(ctx, s.guard, subject) },
	} {
		ctx := context.Background()
		if byCallersDeadline {
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(ctx, callerTimeout)
			defer cancel()
		}
		if err, ok := returned(t, what, func() error { return call(ctx) }); ok {
			wantEndOf(t, what, byCallersDeadline, err)
		}
	}
}

// returned returns what a call returns, unless it hangs.
func returned(t *testing.T, what string, call func() error) (err error, ok bool) {
	t.Helper()
	done := make(chan error, 1)
	go func() { done <- call() }()
	select {
	case err = <-done:
		return err, true
	case <-time.After(hang):
		t.Errorf("%s has not returned within %v", what, hang)
		return nil, false
	}
}

// hang is when a call is taken to hang. It is shorter than patient, which a caller's deadline must beat.
const hang = patient - 5*time.Second

// wantEndOf checks whether an error is the end of the caller's context or a failure of the store. Once
// the breaker is open, a call fails before its caller's deadline.
func wantEndOf(t *testing.T, what string, callers bool, err error) {
	t.Helper()
	if failed := new(core.StoreError); errors.As(err, &failed) && failed.Class == core.StoreBreakerOpen {
		callers = false
	}
	ended := errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)
	if ended != callers || errors.Is(err, core.ErrStore) == callers {
		t.Errorf("%s: %v; want the caller's end: %v, and otherwise the store's failure", what, err, callers)
	}
}

// guarded calls a guard that fails open, and converts its answer to the error that a direct call
// would return.
func guarded(ctx context.Context, guard *watchedGuard, who string) error {
	answer := guard.Check(callBy(ctx, who))
	switch {
	case answer.Refusal == nil:
		return storeError(guard.limiter)
	case answer.Refusal.Status == http.StatusServiceUnavailable && answer.Refusal.Decision.Reason == core.ContextEnded:
		return context.DeadlineExceeded
	default:
		return fmt.Errorf("promise: a guard that fails open answers %+v", answer.Refusal)
	}
}

// storeError returns the error of a limiter whose store does not answer. If the breaker has opened,
// that is the breaker's error.
func storeError(limiter *core.Limiter) error {
	if limiter.Stats().StoreErrors[core.StoreBreakerOpen] > 0 {
		return &core.StoreError{Class: core.StoreBreakerOpen, Err: core.ErrStore}
	}
	return core.ErrStore
}

// ContextEndIsTheCallers: a call whose context has ended is refused with the context's error, never
// as a failure of the store, which might let it pass. If the context ended before the call was
// sent, the call is not charged.
func ContextEndIsTheCallers(t *testing.T, e Engine) {
	for _, policy := range []core.StorePolicy{core.FailOpen, core.FailClosed} {
		t.Run(policy.String(), func(t *testing.T) {
			limit := core.PerDay(10)
			rule := ruleOf("name", limit)
			rule.OnStoreError = policy
			t.Run("before", func(t *testing.T) { endedBefore(t, watchGuard(t, e.Options(t), rule), limit) })
			if !e.inProcess() {
				t.Run("meanwhile", func(t *testing.T) { e.endsMeanwhile(t, rule) })
			}
		})
	}
}

// endedBefore makes calls with contexts that have ended.
func endedBefore(t *testing.T, guard *watchedGuard, limit core.Limit) {
	c := counter{t: t, limiter: guard.limiter, name: "name", subject: subjectOf("caller"), limit: limit}
	c.mustTake(1)
	for want, end := range map[error]func(context.Context) (context.Context, context.CancelFunc){
		context.Canceled: func(ctx context.Context) (context.Context, context.CancelFunc) {
			ctx, cancel := context.WithCancel(ctx)
			cancel()
			return ctx, cancel
		},
		context.DeadlineExceeded: func(ctx context.Context) (context.Context, context.CancelFunc) {
			return context.WithDeadline(ctx, time.Now().Add(-time.Second))
		},
	} {
		ctx, cancel := end(context.Background())
		defer cancel()
		d, err := c.limiter.MustCounter(c.name, limit).Allow(ctx, c.subject)
		_, err2 := c.limiter.MustCounter(c.name, limit).Peek(ctx, c.subject)
		_, err3 := c.limiter.MustCounter(c.name, limit).Reset(ctx, c.subject)
		for _, err := range []error{err, err2, err3} {
			if !errors.Is(err, want) || errors.Is(err, core.ErrStore) || !isZero(d) {
				t.Errorf("%v, %+v; want %v", err, d, want)
			}
		}
		wantContextEnded(t, guard, guard.Check(callBy(ctx, "caller")))
	}
	c.wantLeft(9)
}

// endsMeanwhile makes calls whose callers leave while the servers do not answer.
func (e Engine) endsMeanwhile(t *testing.T, rule core.Rule) {
	options := e.hanging(t)
	options.Timeout = storeTimeout
	connect(t, options)
	guard := watchGuard(t, options, rule)
	e.stop()
	defer e.resume(t, options.Redis)
	for !leavesMeanwhile(t, guard) {
		t.Log("the machine is so busy that the store's time was over before the caller left")
	}
}

// leavesMeanwhile makes calls whose caller leaves while the servers do not answer. It reports false if
// the caller left so late that the calls show nothing.
func leavesMeanwhile(t *testing.T, guard *watchedGuard) bool {
	ctx, leave := context.WithCancel(context.Background())
	left, begin := make(chan time.Duration, 1), time.Now()
	time.AfterFunc(callerTimeout, func() {
		leave()
		left <- time.Since(begin)
	})
	err, ok := returned(t, "Allow", func() error {
		_, err := guard.limiter.MustCounter("name", core.PerDay(10)).Allow(ctx, "subject")
		return err
	})
	if ok && <-left > storeTimeout/2 {
		return false
	}
	if ok {
		wantEndOf(t, "Allow", true, err)
		wantContextEnded(t, guard, guard.Check(callBy(ctx, "caller")))
	}
	return true
}

// wantContextEnded checks that a guard refused the call because its caller left.
func wantContextEnded(t *testing.T, guard *watchedGuard, answer core.Answer) {
	t.Helper()
	if status(answer) != http.StatusServiceUnavailable || guard.last.Reason != core.ContextEnded || guard.last.Allowed || guard.last.Source != core.FromNobody {
		t.Errorf("status %d, %+v; want %d and %s", status(answer), guard.last, http.StatusServiceUnavailable, core.ContextEnded)
	}
}
