package core

import (
	"context"

	"github.com/accesslimit/accesslimit/core/internal/engine"
	"github.com/accesslimit/accesslimit/core/internal/rediskey"
	"github.com/accesslimit/accesslimit/core/internal/tally"
)

// chargesHere reports whether chargeHere decides calls of n permits.
func (h *handle) chargesHere(n int) bool {
	return h != nil && h.single != nil && h.memory != nil && 0 < n && int64(n) <= h.single.counted.Compiled.Max
}

// chargeHere charges a call to the only limit of its handle, which is counted in this process. It
// has the effect of handleCall.ask in half the instructions, because the store cannot fail and no
// other limit can refuse. BenchmarkAllow takes 0.85 of the time that it takes without chargeHere.
func (h *handle) chargeHere(ctx context.Context, subject string, n int, d *Decision) {
	f, limit := h.front, h.single
	c := f.directs.Get().(*directCall)
	counter, v := &c.here.counter, &c.here.verdict
	counter.Key = rediskey.Append(counter.Key[:0], h.keyHead, subject, limit.counted.KeyTail)
	counter.Limit, counter.Cost = limit.counted.Compiled, int64(n)
	h.memory.DecideOne(counter, true, v)
	if v.RetryAfter == 0 {
		traits := tally.Bound
		if engine.IsNear(counter, v) {
			traits |= tally.Near
			noteNear(h.named.tally, c.ID(), []byte(subject), engine.ShareInUse(counter, v))
		}
		h.named.tally.CountUsual(traits, &c.place)
		d.receipt.FillPlain(f.refunds, counter, v, c.ID())
	} else {
		h.named.tally.Count(string(LimitExceeded), string(f.source), tally.Bound, &c.place)
		noteRefusal(h.named.tally, c.ID(), []byte(subject))
	}
	d.fill(h.named.name, &limit.limit, v, f.source)
	d.Key = subject
	c.Clear()
	f.directs.Put(c)
	if f.options.OnDecision != nil {
		f.options.reportDirect(ctx, d, nil)
	}
}
