package outgoing

import (
	"context"
	"time"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
	"github.com/accesslimit/accesslimit/core/internal/panics"
	"github.com/accesslimit/accesslimit/core/internal/rediskey"
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
	ban := t.pauseKey(key)
	paused, err := t.parts.Store.Pause(context.Background(), ban, p)
	if paused.Longer {
		t.of.Waits.Pauses.Add(1)
	}
	if err == nil {
		// Struck, because without Redis only bans that begin are listed.
		listed := algorithm.Verdict{At: paused.At, RetryAfter: paused.Lasts, Struck: true}
		t.parts.Bans.Saw(ban, t.rule.Name, []byte(key), &listed)
		return
	}
	t.of.StoreFailed(err)
	if _, waits := t.unrecorded.LoadOrStore(key, true); !waits {
		time.AfterFunc(again, panics.Guard(func() { t.recordAgain(key, *p) }, t.parts.Log.Panicked))
	}
}

// again is how long an attempt to record a pause waits for the next one.
const again = time.Second

// recordAgain records what is left of a pause that this process knows.
func (t *Turns) recordAgain(key string, p algorithm.Pause) {
	t.unrecorded.Delete(key)
	if p.Span = t.parts.Known.Lasts(t.pauseKey(key)); p.Span > 0 {
		t.record(key, &p)
	}
}

func (t *Turns) pauseKey(key string) []byte {
	return rediskey.Append(nil, t.parts.KeyHead, key, t.of.Counted.BanKey)
}

// answeredAgain ends the time after a pause. Then the bucket starts empty, so that the calls that have
// waited do not come all at once.
func (t *Turns) answeredAgain(key string) {
	ctx := context.Background()
	a := &attempt{Turns: t, ctx: ctx, key: key}
	bucket := []algorithm.Counter{a.counter(t.paces.of(key, t.of.Counted.Limits[0]), "")}
	bucket[0].Cost = bucket[0].Limit.Max
	t.parts.Store.DecideUpTo(ctx, bucket, make([]algorithm.Verdict, 1))
	if err := t.parts.Store.PauseOver(ctx, t.pauseKey(key)); err != nil {
		t.of.StoreFailed(err)
	}
}
