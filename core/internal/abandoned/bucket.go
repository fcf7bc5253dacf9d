package abandoned

import (
	"container/heap"
	"context"
	"slices"
	"time"

	"github.com/accesslimit/accesslimit/core/internal/failure"
	"github.com/accesslimit/accesslimit/core/internal/panics"
)

// bucket holds the abandoned turns of a bucket.
type bucket struct {
	name
	turns byPosition
	pass  chan struct{} // closed when the present pass ends; nil: there is none
	retry *time.Timer   // begins the next pass; nil: there is none to come
	wait  time.Duration // before that
}

// byPosition is a heap. The newest turn is the first.
type byPosition []Turn

// Len implements heap.Interface.
func (p byPosition) Len() int { return len(p) }

// Less implements heap.Interface.
func (p byPosition) Less(i, j int) bool { return p[i].Position > p[j].Position }

// Swap implements heap.Interface.
func (p byPosition) Swap(i, j int) { p[i], p[j] = p[j], p[i] }

// Push implements heap.Interface.
func (p *byPosition) Push(turn any) { *p = append(*p, turn.(Turn)) }

// Pop implements heap.Interface.
func (p *byPosition) Pop() any {
	last := len(*p) - 1
	turn := (*p)[last]
	*p = (*p)[:last]
	return turn
}

// begin begins a pass, and forgets the turns that no longer count. It reports false if a pass runs
// already. t must be locked.
func (t *Turns) begin(b *bucket) bool {
	if b.pass != nil {
		return false
	}
	if b.retry != nil {
		b.retry.Stop()
		b.retry = nil
	}
	before, now := len(b.turns), time.Now()
	b.turns = slices.DeleteFunc(b.turns, func(turn Turn) bool { return !turn.until.After(now) })
	heap.Init(&b.turns)
	t.kept -= before - len(b.turns)
	b.pass = make(chan struct{})
	return true
}

// run gives back turns, the newest first, until one has to stay. If the store does not answer, the
// turn may have come back, so it is not tried again.
func (t *Turns) run(b *bucket) {
	ended := false
	defer func() {
		if !ended { // also after a panic
			t.mu.Lock()
			defer t.mu.Unlock()
			t.end(b)
		}
	}()
	var stayed *Turn
	for {
		turn, ok := t.next(b, stayed)
		if !ok {
			ended = true
			return
		}
		stays, err := t.giveBack(context.Background(), turn.Charge)
		if err != nil {
			if !failure.MayHaveActed(err) {
				t.putBack(b, turn)
			}
			return
		}
		if stays > 0 {
			turn = turn.rest(stays)
			stayed = &turn
		} else {
			stayed = nil
			t.cameBack(b)
		}
	}
}

// putBack keeps a turn that the store was not asked for.
func (t *Turns) putBack(b *bucket, turn Turn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	heap.Push(&b.turns, turn)
	t.kept++
}

func (t *Turns) cameBack(b *bucket) {
	t.mu.Lock()
	defer t.mu.Unlock()
	b.wait = shortestWait
}

// next returns the turn to give back next. stayed is the turn before it if that had to stay,
// otherwise nil. If there is no next turn, next ends the pass and returns false.
func (t *Turns) next(b *bucket, stayed *Turn) (turn Turn, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	more := len(b.turns) > 0
	if stayed != nil {
		more = more && b.turns[0].Position > stayed.Position // its caller left meanwhile
		heap.Push(&b.turns, *stayed)
		t.kept++
	}
	if !more {
		t.end(b)
		return turn, false
	}
	t.kept--
	return heap.Pop(&b.turns).(Turn), true
}

// end ends a pass. t must be locked.
func (t *Turns) end(b *bucket) {
	close(b.pass)
	b.pass = nil
	if len(b.turns) == 0 {
		delete(t.byBucket, b.name)
	} else {
		t.tryLater(b)
	}
}

// tryLater schedules the next pass. t must be locked.
func (t *Turns) tryLater(b *bucket) {
	if t.closed {
		return
	}
	again := func() { t.store.InBackground(func() { t.tryAgain(b.name) }) }
	b.retry = time.AfterFunc(b.wait, panics.Guard(again, t.panicked))
	b.wait = min(2*b.wait, longestWait)
}

// tryAgain tries the turns of a bucket, if any are kept.
func (t *Turns) tryAgain(of name) {
	t.mu.Lock()
	b := t.byBucket[of]
	begins := b != nil && t.begin(b)
	t.mu.Unlock()
	if begins {
		t.run(b)
	}
}
