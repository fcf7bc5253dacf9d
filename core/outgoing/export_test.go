package outgoing

import (
	"context"
	"sync"
	"time"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/internal/abandoned"
	"github.com/accesslimit/accesslimit/core/internal/algorithm"
	"github.com/accesslimit/accesslimit/core/internal/limiter"
)

// Stats returns the counts of these turns, which a Limiter returns among others.
func (t *Turns) Stats() core.OutgoingStats {
	of := t.prepared.Counts
	return core.OutgoingStats{
		Sent: of.Sent.Load(), GaveUp: of.GaveUp.Load(), Refused: of.Refused.Load(), Pauses: of.Pauses.Load(),
		Waited: of.Waited.Load(), WaitTime: time.Duration(of.WaitTime.Load()), Waiting: int(of.Waiting.Load()),
	}
}

// Lines returns the number of lines in which calls wait.
func Lines(t *Turns) (n int) {
	for _, of := range []*lines{&t.lines, &t.lookouts} {
		of.mu.Lock()
		n += len(of.byKey)
		of.mu.Unlock()
	}
	return n
}

// SawAPause reports whether a call with a key, or one that waits, saw a pause.
func SawAPause(t *Turns, key string) bool { return t.paces.find(key) != nil }

// Unrecorded returns the number of pauses that are to be recorded.
func Unrecorded(t *Turns) int { return int(t.unrecorded.count.Load()) }

// late is a store of which one answer comes late.
type late struct {
	limiter.Store
	reservation     bool // the answer is that of Reserve, otherwise of Decide
	once            sync.Once
	granted, answer chan struct{}
}

// Do implements limiter.Store.
func (l *late) Do(ctx context.Context, op *algorithm.Op) {
	l.Store.Do(ctx, op)
	if (op.Mode == algorithm.InTurn) == l.reservation {
		l.once.Do(func() { close(l.granted) })
		<-l.answer
	}
}

// AnswerLate lets the next call wait for the answer to its reservation, or else to its first question,
// until answer is called. granted is closed when the store has decided.
func AnswerLate(t *Turns, reservation bool) (granted <-chan struct{}, answer func()) {
	l := &late{Store: t.parts.Store, reservation: reservation, granted: make(chan struct{}), answer: make(chan struct{})}
	t.parts.Store, t.parts.Unused = l, abandoned.New(l, t.parts.Log.Panicked)
	return l.granted, func() { close(l.answer) }
}
