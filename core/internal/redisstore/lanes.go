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
	node    node
	pipes   pipeNode   // the node, nil where every call goes alone
	follows followNode // the node, nil where no slots move
	addr    string
	breaker *breaker // nil where it may be several servers
	watch   *watch   // nil there, too
	several bool     // it may be more than one server
	most    int      // calls on their way alone
	start   time.Time

	mu    sync.Mutex
	alone []uint64 // the hashes of the calls that are on their way alone
	lanes [laneCount]lane
	timer *time.Timer // runs while calls wait, to end those whose time is up
	armed bool
	spare sync.Pool // of *ticket
}

const (
	// laneCount is how many pipelines can be on their way to a shard at once.
	laneCount = 4
	// maxAlone is how many calls can be on their way alone, where the client has connections for so many, and the lanes. With 4
	// goroutines go-redis's bare EvalSha is as fast; with 16, lanes from the fifth call on are 1.2 times as fast as it, and from
	// the seventeenth on 0.9 times.
	maxAlone = 4
	// maxPipeline is how many calls a pipeline takes at most. Of 16,000 callers at once, with a Timeout of 100 ms, 14,000 got no
	// answer in time by pipelines of up to 4,096, all of which ended too late; by those of 512 none, or 3,700 on a busy machine.
	maxPipeline = 512
)

// lane is the calls that wait for its next pipeline, and those on their way with the last.
type lane struct {
	busy    atomic.Bool // a goroutine sees to it
	unsent  atomic.Bool // the last pipeline got no connection, or none yet
	waiting []*ticket
	flying  []*ticket
}

// ticket is one call that waits in a lane. What it asks is its own copy, because it may outlive the call.
type ticket struct {
	ctx      context.Context
	counters []algorithm.Counter
	keys     []byte
	charge   bool
	calls    int64 // one, but for a lease
	hash     uint64
	since    time.Duration

	state  atomic.Uint32
	done   chan struct{} // has one thing in it when the call has an answer, or an error
	answer answer
	group  int32
	behind int64 // how many equal calls are before it in the group
	err    error
	room   room
}

// The states of a ticket.
const (
	waits uint32 = iota
	ended        // by an answer or an error, which the caller finds in it
	left         // by its caller
)

func newShard(n node, connections int, c *common) *shard {
	s := &shard{common: c, node: n, most: max(1, min(connections-laneCount, maxAlone)), start: time.Now()}
	s.pipes, _ = n.(pipeNode)
	s.follows, _ = n.(followNode)
	s.spare.New = func() any { return &ticket{done: make(chan struct{}, 1)} }
	return s
}

// moves reports whether the shard's slots may move to another.
func (s *shard) moves() bool { return s.follows != nil }

// run runs a command. After a refusal by the server that it was sent to, it goes where the slot is
// now.
func (s *shard) run(ctx context.Context, cmd onceCmd, refusal error) error {
	if refusal != nil && s.moves() {
		return s.follows.follow(ctx, cmd, refusal)
	}
	return s.node.process(ctx, cmd)
}

// goAlone says whether a call may go alone; it must come back then.
func (s *shard) goAlone(hash uint64) bool {
	switch {
	case s.pipes == nil:
		return true
	case s.lane(hash).busy.Load(): // nearly always, when there are many
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lane(hash).busy.Load() || len(s.alone) == s.most || slices.Contains(s.alone, hash) {
		return false
	}
	s.alone = append(s.alone, hash)
	return true
}

func (s *shard) comeBack(hash uint64) {
	if s.pipes == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	at, last := slices.Index(s.alone, hash), len(s.alone)-1
	s.alone[at] = s.alone[last]
	s.alone = s.alone[:last]
}

func (s *shard) lane(hash uint64) *lane { return &s.lanes[hash%laneCount] }

// queue puts calls into their lane, as one ticket.
func (s *shard) queue(ctx context.Context, counters []algorithm.Counter, charge bool, calls int64, hash uint64) *ticket {
	t := s.spare.Get().(*ticket)
	t.ctx, t.charge, t.calls, t.hash, t.since = ctx, charge, calls, hash, time.Since(s.start)
	t.state.Store(waits)
	t.copy(counters)
	s.mu.Lock()
	l := s.lane(hash)
	l.waiting = append(l.waiting, t)
	idle := !l.busy.Swap(true)
	if !s.armed {
		s.arm(s.timeout)
	}
	s.mu.Unlock()
	if idle {
		go s.serve(l)
	}
	return t
}

func (t *ticket) copy(counters []algorithm.Counter) {
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
func (t *ticket) wait() error {
	if t.ctx.Done() == nil {
		<-t.done
		return nil
	}
	select {
	case <-t.done:
		return nil
	case <-t.ctx.Done():
	}
	if t.state.CompareAndSwap(waits, left) {
		return unanswered{t.ctx.Err()}
	}
	<-t.done
	return nil
}

// giveBack returns the ticket for another call to use, unless a pipeline may still write to it.
func (s *shard) giveBack(t *ticket) {
	if t.err != nil {
		return
	}
	t.ctx, t.answer = nil, answer{}
	s.spare.Put(t)
}

// end gives a ticket its error; or its answer, which stands in it already.
func (t *ticket) end(err error) {
	if t.state.CompareAndSwap(waits, ended) {
		t.err = err
		t.done <- struct{}{}
	}
}

// serve sends a lane's pipelines, one after the other, until nobody waits.
func (s *shard) serve(l *lane) {
	var p pipeline
	for {
		runtime.Gosched() // those who are about to come, come along: half the pipelines for 64 goroutines on a hot key
		tickets := s.take(l)
		if len(tickets) == 0 {
			return
		}
		l.unsent.Store(true)
		p.run(s, l, tickets)
		s.land(l)
		p.end()
	}
}

// take makes those who wait the ones that fly. Who has left stays behind. When nobody is left the lane is idle.
func (s *shard) take(l *lane) []*ticket {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(l.waiting) > 0 && len(l.flying) == 0 {
		n := min(len(l.waiting), maxPipeline)
		for _, t := range l.waiting[:n] {
			if t.state.Load() != waits {
				continue
			}
			if gone := t.ctx.Err(); gone != nil {
				t.end(gone)
				continue
			}
			l.flying = append(l.flying, t)
		}
		l.waiting = slices.Delete(l.waiting, 0, n)
	}
	l.busy.Store(len(l.flying) > 0)
	return l.flying
}

// land forgets who flew, so that nobody but the pipeline knows their tickets any more.
func (s *shard) land(l *lane) {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(l.flying)
	l.flying = l.flying[:0]
}

// arm lets the timer run until the next time that somebody's may be up.
func (s *shard) arm(after time.Duration) {
	s.armed = true
	if s.timer == nil {
		s.timer = time.AfterFunc(after, s.expire)
		return
	}
	s.timer.Reset(after)
}

// expire ends the calls whose time is up, wherever they are.
func (s *shard) expire() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.armed = false
	next, now := time.Duration(-1), time.Since(s.start)
	for i := range s.lanes {
		awaited, waited := errAwaited, errWaited
		if s.lanes[i].unsent.Load() {
			awaited, waited = errUnsent, errUnsent
		}
		for _, of := range [...]struct {
			tickets []*ticket
			late    error
		}{{s.lanes[i].flying, awaited}, {s.lanes[i].waiting, waited}} {
			for _, t := range of.tickets {
				left := t.since + s.timeout - now
				switch {
				case t.state.Load() != waits:
				case left <= 0:
					t.end(of.late)
				case next < 0 || left < next:
					next = left
				}
			}
		}
	}
	if next >= 0 {
		s.arm(next)
	}
}
