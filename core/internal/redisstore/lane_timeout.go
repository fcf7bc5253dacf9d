package redisstore

import (
	"math"
	"time"

	"github.com/accesslimit/accesslimit/core/internal/panics"
)

// never is the time until the next timeout if no call waits for one.
const never = time.Duration(math.MaxInt64)

// startTimer sets the timer to the next timeout. One timer serves all calls in the lanes, because
// they have the same timeout. The shard must be locked.
func (s *shard) startTimer(after time.Duration) {
	s.timerRuns = true
	if s.timer == nil {
		s.timer = time.AfterFunc(after, panics.Guard(s.expireCalls, s.reportPanic))
		return
	}
	s.timer.Reset(after)
}

// expireCalls ends the calls in the lanes whose time is up. The error shows whether a call may have
// been charged: only a pipeline that got a connection can have charged its calls.
func (s *shard) expireCalls() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.timerRuns = false
	next := never
	for i := range s.lanes {
		l := &s.lanes[i]
		next = min(next, s.expire(l.inFlight, l.errInFlight), s.expire(l.waiting, l.errWaiting))
	}
	if next != never {
		s.startTimer(next)
	}
}

// errInFlight returns the error of a call of the last pipeline that ends now.
func (l *lane) errInFlight() error {
	if l.missed() {
		return errNoConnection
	}
	return errNoAnswer
}

// errWaiting returns the error of a call that ends while it waits for the next pipeline.
func (l *lane) errWaiting() error {
	if l.unsent.Load() {
		return errNoConnection
	}
	return errNoTurn
}

// expire ends the calls whose time is up, and returns the time until the next timeout.
func (s *shard) expire(calls []*laneCall, reason func() error) (next time.Duration) {
	next, now := never, time.Since(s.start)
	for _, c := range calls {
		left := c.queuedAt + s.timeout - now
		switch {
		case c.state.Load() != stateWaiting:
		case left <= 0:
			s.finishEarly(c, reason(), now)
		default:
			next = min(next, left)
		}
	}
	return next
}
