package redisstore

import (
	"errors"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/sony/gobreaker/v2"

	"github.com/accesslimit/accesslimit/core/internal/failure"
)

// breaker keeps calls away from a server that does not answer. A run of trips that fail opens it; then every call is told so at
// once, until after a while one is let through to try. If that one is answered all are let through again.
//
// What counts is whether the server answers, not what: a caller's own end says nothing about it, and an error of configuration is an
// answer.
type breaker struct {
	circuit       *gobreaker.CircuitBreaker[struct{}]
	timeout       time.Duration
	start         time.Time
	failingSince  atomic.Int64  // when the first trip of the run of failures failed, after start; 0: there is none
	opened        atomic.Uint64 // how often
	openedAt      time.Time     // when it opened; the circuit's lock guards it
	pendingChange atomic.Pointer[breakerChange]
	onChange      func(breakerChange)
	onFailure     func() // called for each trip that counts against the server, if set
}

// change is a breaker's opening, or its closing after a time.
type breakerChange struct {
	open  bool
	after time.Duration
}

// errOpen is what calls are told while the breaker is open.
var errBreakerOpen = errors.New("not asked: the server did not answer before, and is tried again within a second")

// errFailed and errUncounted are what the circuit is told of trips that failed, and of those that say nothing about the server.
var errFailed, errUncounted = errors.New("failed"), errors.New("uncounted")

const (
	// The breaker opens when for aWhile after a failure there were failures only, so many of them with it. The end of all connections at once, or one
	// pause of the server's or of this machine, makes many trips fail, but all in one moment.
	minFailingTime, minFailures = 250 * time.Millisecond, 2
	// openFor is for how long it stays open, at least; at most half as much again, so that a fleet does not come back as one. go-redis, once all
	// its connections failed to open, looks for the server once a second by itself: with that, and this, a server that is back is in
	// use again within two seconds.
	openFor = 600 * time.Millisecond
)

func newBreaker(timeout time.Duration, hear func(breakerChange)) *breaker {
	b := &breaker{timeout: timeout, start: time.Now(), onChange: hear}
	b.circuit = gobreaker.NewCircuitBreaker[struct{}](gobreaker.Settings{
		Timeout:       openFor + rand.N(openFor/2),
		ReadyToTrip:   func(c gobreaker.Counts) bool { return b.shouldTrip(int(c.ConsecutiveFailures)) },
		IsExcluded:    func(err error) bool { return err == errUncounted },
		OnStateChange: b.recordChange,
	})
	return b
}

// isEnough says whether so many failures in a row open it.
func (b *breaker) shouldTrip(failures int) bool {
	lasted := time.Since(b.start) - time.Duration(b.failingSince.Load())
	return failures >= minFailures && lasted >= minFailingTime
}

// run makes a trip, unless the breaker is open.
func (b *breaker) run(trip func() error) (err error) {
	began := time.Since(b.start)
	_, told := b.circuit.Execute(func() (struct{}, error) {
		err = trip()
		return struct{}{}, b.judgeTrip(err, began)
	})
	if told == gobreaker.ErrOpenState || told == gobreaker.ErrTooManyRequests {
		err = errBreakerOpen
	}
	if c := b.pendingChange.Swap(nil); c != nil {
		b.onChange(*c) // not in note: it holds the circuit's lock, and the owner's log may ask for Stats
	}
	return err
}

// judge is what the circuit is told of a trip that began then, after start.
func (b *breaker) judgeTrip(err error, began time.Duration) error {
	if isAnswer(err) {
		if b.failingSince.Load() != 0 {
			b.failingSince.Store(0)
		}
		return nil
	}
	now := time.Since(b.start)
	switch {
	case isTimeUp(err) && now-began < mostOf(b.timeout): // the caller had no more time, or left
		return errUncounted
	default:
		b.failingSince.CompareAndSwap(0, max(1, int64(now)))
		if b.onFailure != nil {
			b.onFailure()
		}
		return errFailed
	}
}

// endsWithTime reports whether a trip ended so because its time was over.
func isTimeUp(err error) bool {
	var u *unreached
	if errors.As(err, &u) {
		return u.ended
	}
	class := classOf(err)
	return class == failure.Timeout || class == failure.NoConnection
}

// answers says whether a trip that ended so shows that the server can answer, be it that a key is elsewhere, or that we may not.
func isAnswer(err error) bool {
	if err == nil {
		return true
	}
	var reply redis.Error // here, because it is allocated where it is declared
	return errors.As(err, &reply) && (classOf(err) != failure.NotReady || isRedirect(err))
}

// note keeps what changed, to be told.
func (b *breaker) recordChange(_ string, from, to gobreaker.State) {
	switch {
	case from == gobreaker.StateClosed:
		b.openedAt = time.Now()
		b.opened.Add(1)
		b.pendingChange.Store(&breakerChange{open: true})
	case to == gobreaker.StateClosed:
		b.pendingChange.Store(&breakerChange{after: time.Since(b.openedAt)})
	}
}
