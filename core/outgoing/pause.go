package outgoing

import (
	"context"
	"time"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
	"github.com/accesslimit/accesslimit/core/internal/panics"
)

// pause records a pause of a key for all processes. The later end wins. If the store does not answer,
// the pause holds in this process, and is recorded as soon as possible.
func (t *Turns) pause(key string, a Answer) {
	p := &algorithm.Pause{
		Span: min(max(0, a.Wait), t.rule.MaxPause).Microseconds(), Refused: a.Refused,
		Base: basePause.Microseconds(), Longest: t.rule.MaxPause.Microseconds(),
	}
	if a.Wait > 0 {
		p.Span = max(1, p.Span)
	}
	t.record(key, p)
}

func (t *Turns) record(key string, p *algorithm.Pause) {
	paused, err := t.tryToRecord(key, p)
	if paused.Longer {
		t.prepared.Counts.Pauses.Add(1)
	}
	if err == nil {
		return
	}
	if t.unrecorded.add(key, micros(paused.Lasts), p.Refused) {
		t.recordSoon(key, *p)
	}
	t.prepared.StoreFailed(err) // last, because a logger may panic
}

// tryToRecord returns what the pause has led to, and why it holds only in this process, if it does.
func (t *Turns) tryToRecord(key string, p *algorithm.Pause) (algorithm.Paused, error) {
	ctx, known, stored := context.Background(), t.parts.Pauses, t.pauseKey(key)
	change := algorithm.Change{Kind: algorithm.Pauses, Key: stored, Pause: p}
	err := t.parts.Store.Change(ctx, &change)
	paused := change.Paused
	if err != nil {
		paused = known.Hold(stored, t.rule.Name, key, p)
	} else {
		known.Recorded(ctx, t.rule.Name, key, paused)
	}
	t.paces.entry(key).paused(time.Now(), micros(paused.Lasts))
	return paused, err
}

// again is how long an attempt to record a pause waits for the next one.
const again = time.Second

func (t *Turns) recordSoon(key string, p algorithm.Pause) {
	time.AfterFunc(again, panics.Guard(func() { t.recordAgain(key, p) }, t.parts.Log.Panicked))
}

// recordAgain records what is left of a pause that only this process knows, and that was counted when it
// began. When the limiter is closed, the next attempt is the last.
func (t *Turns) recordAgain(key string, p algorithm.Pause) {
	pause := t.unrecorded.of(key)
	p.Refused = pause.refused
	if p.Span = time.Until(pause.ends).Microseconds(); p.Span > 0 {
		if _, err := t.tryToRecord(key, &p); err != nil && !t.parts.InFlight.Closed() {
			t.recordSoon(key, p)
			t.prepared.StoreFailed(err)
			return
		}
	}
	if !t.unrecorded.remove(key, pause) {
		t.recordSoon(key, p)
	}
}

func (t *Turns) pauseKey(key string) []byte {
	return t.parts.Pauses.Stored(t.rule.Name, key)
}

// answeredAgain ends the time after a pause. Then the bucket starts empty, so that the calls that have
// waited do not come all at once.
func (t *Turns) answeredAgain(key string) {
	ctx := context.Background()
	bucket := t.turnCounter(key)
	bucket.Cost = bucket.Limit.Max
	t.parts.Store.Do(ctx, algorithm.NewOp(algorithm.UpTo, bucket))
	if err := t.parts.Store.Change(ctx, &algorithm.Change{Kind: algorithm.EndsPause, Key: t.pauseKey(key)}); err != nil {
		t.prepared.StoreFailed(err)
	}
}
