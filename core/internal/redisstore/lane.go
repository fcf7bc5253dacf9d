package redisstore

import (
	"context"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
)

// shard is one server, and the ways to it.
//
// A call that finds few others on their way goes alone, in its own goroutine, as if nothing of this were here. When many are, the
// calls go by lanes: those that come while a lane's pipeline is on its way wait together, and leave as its next pipeline. Of these,
// the ones that ask the same leave as one script call. A call for what is on its way alone waits in its lane too, so that a hot
// key's calls meet.
//
// A pipeline runs under Timeout, never under one caller's context. Each caller waits by their own: who leaves before the pipeline
// does is not sent.
type shard struct {
	*common
	node      node
	pipelines pipelineNode // the node, nil where every call goes alone
	redirects redirectNode // the node, nil where no slots move
	addr      string
	breaker   *breaker     // nil where it may be several servers
	server    *serverWatch // nil there, too
	several   bool         // it may be more than one server
	maxDirect int          // calls on their way alone
	start     time.Time

	mu        sync.Mutex
	direct    []uint64 // the hashes of the calls that are on their way alone
	lanes     [laneCount]lane
	timer     *time.Timer // runs while calls wait, to end those whose time is up
	timerRuns bool
	freeCalls sync.Pool // of *ticket
}

const (
	// laneCount is how many pipelines can be on their way to a shard at once.
	laneCount = 4
	// maxAlone is how many calls can be on their way alone, where the client has connections for so many, and the lanes. With 4
	// goroutines go-redis's bare EvalSha is as fast; with 16, lanes from the fifth call on are 1.2 times as fast as it, and from
	// the seventeenth on 0.9 times.
	mostDirect = 4
	// maxPipeline is how many calls a pipeline takes at most. Of 16,000 callers at once, with a Timeout of 100 ms, 14,000 got no
	// answer in time by pipelines of up to 4,096, all of which ended too late; by those of 512 none, or 3,700 on a busy machine.
	maxPipeline = 512
)

// lane is the calls that wait for its next pipeline, and those on their way with the last.
type lane struct {
	served   atomic.Bool // a goroutine sees to it
	unsent   atomic.Bool // the last pipeline got no connection, or none yet
	waiting  []*laneCall
	inFlight []*laneCall
}

// ticket is one call that waits in a lane. What it asks is its own copy, because it may outlive the call.
type laneCall struct {
	ctx      context.Context
	counters []algorithm.Counter
	keys     []byte
	charge   bool
	calls    int64 // one, but for a lease
	hash     uint64
	queuedAt time.Duration

	state   atomic.Uint32
	done    chan struct{} // has one thing in it when the call has an answer, or an error
	reply   scriptReply
	group   int32
	ahead   int64 // how many equal calls are before it in the group
	err     error
	scratch scratch
}

// The states of a ticket.
const (
	stateWaiting   uint32 = iota
	stateFinished         // by an answer or an error, which the caller finds in it
	stateAbandoned        // by its caller
)

func newShard(n node, connections int, c *common) *shard {
	s := &shard{common: c, node: n, maxDirect: max(1, min(connections-laneCount, mostDirect)), start: time.Now()}
	s.pipelines, _ = n.(pipelineNode)
	s.redirects, _ = n.(redirectNode)
	s.freeCalls.New = func() any { return &laneCall{done: make(chan struct{}, 1)} }
	return s
}

// moves reports whether the shard's slots may move to another.
func (s *shard) hasMovingSlots() bool { return s.redirects != nil }

// run runs a command. After a refusal by the server that it was sent to, it goes where the slot is
// now.
func (s *shard) process(ctx context.Context, cmd command, refusal error) error {
	if refusal != nil && s.hasMovingSlots() {
		return s.redirects.redirect(ctx, cmd, refusal)
	}
	return s.node.process(ctx, cmd)
}

// goAlone says whether a call may go alone; it must come back then.
func (s *shard) beginDirect(hash uint64) bool {
	switch {
	case s.pipelines == nil:
		return true
	case s.lane(hash).served.Load(): // nearly always, when there are many
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lane(hash).served.Load() || len(s.direct) == s.maxDirect || slices.Contains(s.direct, hash) {
		return false
	}
	s.direct = append(s.direct, hash)
	return true
}

func (s *shard) endDirect(hash uint64) {
	if s.pipelines == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	at, last := slices.Index(s.direct, hash), len(s.direct)-1
	s.direct[at] = s.direct[last]
	s.direct = s.direct[:last]
}

func (s *shard) lane(hash uint64) *lane { return &s.lanes[hash%laneCount] }

// queue puts calls into their lane, as one ticket.
func (s *shard) enqueue(ctx context.Context, counters []algorithm.Counter, charge bool, calls int64, hash uint64) *laneCall {
	t := s.freeCalls.Get().(*laneCall)
	t.ctx, t.charge, t.calls, t.hash, t.queuedAt = ctx, charge, calls, hash, time.Since(s.start)
	t.state.Store(stateWaiting)
	t.copyCounters(counters)
	s.mu.Lock()
	l := s.lane(hash)
	l.waiting = append(l.waiting, t)
	idle := !l.served.Swap(true)
	if !s.timerRuns {
		s.startTimer(s.timeout)
	}
	s.mu.Unlock()
	if idle {
		go s.serveLane(l)
	}
	return t
}

func (t *laneCall) copyCounters(counters []algorithm.Counter) {
	t.counters, t.keys = append(t.counters[:0], counters...), t.keys[:0]
	for i := range counters {
		t.keys = append(t.keys, counters[i].Key...)
	}
	at := 0
	for i := range t.counters {
		end := at + len(t.counters[i].Key)
		t.counters[i].Key, at = t.keys[at:end:end], end
	}
}

// wait returns when the ticket has an answer or an error, or with the error of its caller's context when that ends first: then the
// ticket is lost, and nobody knows whether it flies.
func (t *laneCall) await() error {
	if t.ctx.Done() == nil {
		<-t.done
		return nil
	}
	select {
	case <-t.done:
		return nil
	case <-t.ctx.Done():
	}
	if t.state.CompareAndSwap(stateWaiting, stateAbandoned) {
		return unanswered{t.ctx.Err()}
	}
	<-t.done
	return nil
}

// giveBack returns the ticket for another call to use, unless a pipeline may still write to it.
func (s *shard) recycle(t *laneCall) {
	if t.err != nil {
		return
	}
	t.ctx, t.reply = nil, scriptReply{}
	s.freeCalls.Put(t)
}

// end gives a ticket its error; or its answer, which stands in it already.
func (t *laneCall) finish(err error) {
	if t.state.CompareAndSwap(stateWaiting, stateFinished) {
		t.err = err
		t.done <- struct{}{}
	}
}

// serve sends a lane's pipelines, one after the other, until nobody waits.
func (s *shard) serveLane(l *lane) {
	var p pipeline
	for {
		runtime.Gosched() // those who are about to come, come along: half the pipelines for 64 goroutines on a hot key
		tickets := s.takeBatch(l)
		if len(tickets) == 0 {
			return
		}
		l.unsent.Store(true)
		p.run(s, l, tickets)
		s.clearInFlight(l)
		p.finish()
	}
}

// take makes those who wait the ones that fly. Who has left stays behind. When nobody is left the lane is idle.
func (s *shard) takeBatch(l *lane) []*laneCall {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(l.waiting) > 0 && len(l.inFlight) == 0 {
		n := min(len(l.waiting), maxPipeline)
		for _, t := range l.waiting[:n] {
			if t.state.Load() != stateWaiting {
				continue
			}
			if gone := t.ctx.Err(); gone != nil {
				t.finish(gone)
				continue
			}
			l.inFlight = append(l.inFlight, t)
		}
		l.waiting = slices.Delete(l.waiting, 0, n)
	}
	l.served.Store(len(l.inFlight) > 0)
	return l.inFlight
}

// land forgets who flew, so that nobody but the pipeline knows their tickets any more.
func (s *shard) clearInFlight(l *lane) {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(l.inFlight)
	l.inFlight = l.inFlight[:0]
}

// arm lets the timer run until the next time that somebody's may be up.
func (s *shard) startTimer(after time.Duration) {
	s.timerRuns = true
	if s.timer == nil {
		s.timer = time.AfterFunc(after, s.expireCalls)
		return
	}
	s.timer.Reset(after)
}

// expire ends the calls whose time is up, wherever they are.
func (s *shard) expireCalls() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.timerRuns = false
	next, now := time.Duration(-1), time.Since(s.start)
	for i := range s.lanes {
		awaited, waited := errAwaited, errWaited
		if s.lanes[i].unsent.Load() {
			awaited, waited = errUnsent, errUnsent
		}
		for _, of := range [...]struct {
			tickets []*laneCall
			late    error
		}{{s.lanes[i].inFlight, awaited}, {s.lanes[i].waiting, waited}} {
			for _, t := range of.tickets {
				left := t.queuedAt + s.timeout - now
				switch {
				case t.state.Load() != stateWaiting:
				case left <= 0:
					t.finish(of.late)
				case next < 0 || left < next:
					next = left
				}
			}
		}
	}
	if next >= 0 {
		s.startTimer(next)
	}
}
