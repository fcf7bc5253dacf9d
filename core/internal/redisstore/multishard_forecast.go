package redisstore

import (
	"sync"
	"time"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
)

// outlook is what this process expects of the counters of calls over several shards: how many more
// calls will probably pass. It decides nothing, so it may be wrong. It chooses whether the shards
// of a call are asked side by side, or the one that will probably refuse is asked first.
//
// A caller without a forecast is expected to pass once. So of many calls at once by the same
// caller, one is asked side by side, and its answer shows whether the others may be.
type forecastTable struct {
	start   time.Time
	stripes [stripeCount]forecastStripe
}

// Together these parts hold 32,768 forecasts, of 32 bytes each. Two keys with one place forget each
// other's.
const (
	stripeCount = 64
	stripeSize  = 512
)

type forecastStripe struct {
	mu      sync.Mutex
	entries *[stripeSize]forecast // nil until it is needed
}

// forecast is what is expected of calls that ask for the same counters at the same cost.
type forecast struct {
	hash    uint64
	calls   int64         // that will probably pass
	refused bool          // the last one was
	until   time.Duration // since the outlook was made; nothing is known from then on
}

// plenty is so many calls that they need not be counted: no more are ever on their way at once.
const manyCalls = 1 << 20

// place returns where the forecast for a hash is kept; it may be that of another hash. The part
// must be locked.
func (o *forecastTable) lockEntry(hash uint64) (p *forecastStripe, f *forecast) {
	p = &o.stripes[hash%stripeCount]
	p.mu.Lock()
	if p.entries == nil {
		p.entries = new([stripeSize]forecast)
	}
	return p, &p.entries[hash/stripeCount%stripeSize]
}

// of returns the forecast for a hash, or the zero one if nothing is known. In that case, no other
// call is expected to pass until the call that asks has an answer, or its timeout is over.
func (o *forecastTable) lookup(hash uint64, now, timeout time.Duration) forecast {
	p, f := o.lockEntry(hash)
	defer p.mu.Unlock()
	if f.hash != hash || now >= f.until {
		*f = forecast{hash: hash, until: now + timeout}
		return forecast{}
	}
	return *f
}

// take counts one more call as expected to pass, and returns the forecast before it.
func (o *forecastTable) expectPass(hash uint64) forecast {
	p, f := o.lockEntry(hash)
	defer p.mu.Unlock()
	if f.hash != hash {
		return forecast{}
	}
	before := *f
	if 0 < f.calls && f.calls < manyCalls {
		f.calls--
	}
	return before
}

// doubts reports whether the next call will probably not pass.
func (f *forecast) expectsRefusal() bool { return f.until > 0 && f.calls == 0 }

// learn stores a forecast made from the answer of a shard. A shard that did not answer gets none.
func (o *forecastTable) record(hash uint64, counters []algorithm.Counter, verdicts []algorithm.Verdict) {
	calls, lasts, refused := int64(manyCalls), int64(0), int64(0)
	for i := range counters {
		c, v := &counters[i], &verdicts[i]
		switch {
		case v.Err != nil || v.Ended != nil:
			lasts, calls = 0, 0
		case c.Dry:
		case v.RetryAfter > 0:
			refused = max(refused, v.RetryAfter)
		case c.Charges() && v.Remaining/c.Cost < calls:
			calls, lasts = v.Remaining/c.Cost, v.ResetAfter
		}
	}
	if refused > 0 {
		calls, lasts = 0, refused
	}
	p, f := o.lockEntry(hash)
	defer p.mu.Unlock()
	*f = forecast{hash, calls, refused > 0, time.Since(o.start) + time.Duration(lasts)*time.Microsecond}
}
