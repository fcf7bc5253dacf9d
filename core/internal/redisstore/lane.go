package redisstore

import (
	"context"
	"runtime"
	"slices"
	"sync/atomic"
	"time"

	"github.com/accesslimit/accesslimit/core/internal/panics"
)

const (
	// laneCount is how many pipelines can be on their way to a shard at once.
	laneCount = 4
	// maxPipeline is the largest number of calls in a pipeline. Of 16,000 callers at once, with a
	// Timeout of 100 ms, 14,000 got no answer in time when pipelines could have 4,096 calls,
	// because all of these pipelines ended too late. With 512, every caller got an answer, or all
	// but 3,700 on a busy machine.
	maxPipeline = 512
	// crowd is the number of calls above which a second lane is used while one script can decide
	// calls on different keys. That many calls fill two scripts.
	crowd = 2 * mostKeys
)

// lane holds the calls that wait for its next pipeline, and those that are on their way with the
// last. The shard's mutex guards both lists.
type lane struct {
	served atomic.Bool // whether a goroutine sends its pipelines
	departure
	waiting  []*laneCall
	inFlight []*laneCall
}

func (l *lane) len() int { return len(l.waiting) + len(l.inFlight) }

// laneCall is a call in a lane. Its request is a copy, because it may outlive its caller.
type laneCall struct {
	request
	ctx      context.Context // the caller's
	keys     []byte          // of the request, one after the other
	queuedAt time.Duration   // since the shard's start

	group int   // in the pipeline
	ahead int64 // how many equal calls are before it in the group

	state   atomic.Uint32
	done    chan struct{} // receives one value when the call has a reply or an error
	reply   scriptReply
	err     error
	scratch scratch
}

// The states of a laneCall.
const (
	stateWaiting   uint32 = iota
	stateFinished         // it has a reply or an error, and belongs to its caller again
	stateAbandoned        // its caller has left
)

// lane returns the lane for a call whose keys have this hash. While one script can decide calls on
// different keys, few full pipelines are faster than many short ones: with 16 goroutines, one lane
// made 1.8 times as many decisions as four.
func (s *shard) lane(hash uint64) *lane {
	switch {
	case !s.joins.Load():
		return &s.lanes[hash%laneCount]
	case s.crowded.Load():
		return &s.lanes[hash%2]
	}
	return &s.lanes[0]
}

// enqueue puts a request into its lane.
func (s *shard) enqueue(ctx context.Context, r request) *laneCall {
	c := s.freeCalls.Get().(*laneCall)
	c.ctx, c.queuedAt = ctx, time.Since(s.start)
	c.state.Store(stateWaiting)
	c.copyRequest(r)
	s.mu.Lock()
	l := s.lane(r.hash)
	l.waiting = append(l.waiting, c)
	s.crowded.Store(s.lanes[0].len()+s.lanes[1].len() > crowd)
	isServed := l.served.Swap(true)
	if !s.timerRuns {
		s.startTimer(s.timeout)
	}
	s.mu.Unlock()
	if !isServed {
		go panics.Guard(func() { s.serveLane(l) }, s.reportPanic)()
	}
	return c
}

// copyRequest copies a request, with its keys, into memory that the laneCall has from before.
func (c *laneCall) copyRequest(r request) {
	counters, keys := append(c.op.Counters[:0], r.op.Counters...), c.keys[:0]
	for i := range counters {
		keys = append(keys, counters[i].Key...)
	}
	rest := keys
	for i := range counters {
		n := len(counters[i].Key)
		counters[i].Key, rest = rest[:n:n], rest[n:]
	}
	c.request, c.keys = r, keys
	c.op.Counters = counters
}

// await returns when the call is finished. If its caller's context ends first, it returns that
// error, and it is not known whether the call was sent.
func (c *laneCall) await() error {
	if c.ctx.Done() == nil {
		<-c.done
		return nil
	}
	select {
	case <-c.done:
		return nil
	case <-c.ctx.Done():
	}
	if c.state.CompareAndSwap(stateWaiting, stateAbandoned) {
		return unanswered{c.ctx.Err()}
	}
	<-c.done
	return nil
}

// claim ends a call, with an error or with the reply that the call already has. It reports false if
// the call had already ended. The call's owner learns the outcome from done.
func (c *laneCall) claim(err error) bool {
	if !c.state.CompareAndSwap(stateWaiting, stateFinished) {
		return false
	}
	c.err = err
	return true
}

// finishEarly ends a call with an error before its pipeline does.
func (s *shard) finishEarly(c *laneCall, err error, now time.Duration) {
	if c.claim(err) {
		s.observe(c.hash, now-c.queuedAt, err)
		c.done <- struct{}{}
	}
}

// recycle keeps the laneCall for another call, unless a pipeline may still write to it.
func (s *shard) recycle(c *laneCall) {
	if c.err != nil {
		return
	}
	c.ctx, c.reply = nil, scriptReply{}
	s.freeCalls.Put(c)
}

// serveLane sends a lane's pipelines, one after the other, until no call waits.
func (s *shard) serveLane(l *lane) {
	var p pipeline
	for {
		// Yielding lets further callers join the pipeline. It halves the number of pipelines for 64
		// goroutines on a hot key.
		runtime.Gosched()
		calls := s.takeBatch(l)
		if len(calls) == 0 {
			return
		}
		err := panics.Catch(func() error {
			p.run(s, l, calls)
			s.clearInFlight(l)
			p.finish(s)
			return nil
		})
		if err != nil {
			s.reportPanic(err)
			s.failInFlight(l, err)
			p = pipeline{}
		}
	}
}

// failInFlight ends the calls in flight with an error.
func (s *shard) failInFlight(l *lane, err error) {
	s.mu.Lock()
	for _, c := range l.inFlight {
		s.finishEarly(c, err, time.Since(s.start))
	}
	s.mu.Unlock()
	s.clearInFlight(l)
}

// takeBatch takes the waiting calls for a pipeline, except those whose callers have left. If there
// are none, the lane is no longer served.
func (s *shard) takeBatch(l *lane) []*laneCall {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(l.waiting) > 0 && len(l.inFlight) == 0 {
		n := min(len(l.waiting), maxPipeline)
		for _, c := range l.waiting[:n] {
			if c.state.Load() != stateWaiting {
				continue
			}
			if err := c.ctx.Err(); err != nil {
				s.finishEarly(c, err, time.Since(s.start))
				continue
			}
			l.inFlight = append(l.inFlight, c)
		}
		l.waiting = slices.Delete(l.waiting, 0, n)
	}
	if len(l.inFlight) > 0 {
		l.reset()
	}
	l.served.Store(len(l.inFlight) > 0)
	return l.inFlight
}

// clearInFlight removes the calls in flight from the lane, so that only the pipeline can finish
// them.
func (s *shard) clearInFlight(l *lane) {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(l.inFlight)
	l.inFlight = l.inFlight[:0]
}
