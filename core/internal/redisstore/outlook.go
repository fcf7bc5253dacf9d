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
type outlook struct {
	begun time.Time
	parts [outlookParts]outlookPart
}

// Together these parts hold 32,768 forecasts, of 32 bytes each. Two keys with one place forget each
// other's.
const (
	outlookParts  = 64
	outlookPlaces = 512
)

type outlookPart struct {
	mu     sync.Mutex
	places *[outlookPlaces]forecast // nil until it is needed
}

// forecast is what is expected of calls that ask for the same counters at the same cost.
type forecast struct {
	hash    uint64
	calls   int64         // that will probably pass
	refused bool          // the last one was
	until   time.Duration // since the outlook was made; nothing is known from then on
}

// plenty is so many calls that they need not be counted: no more are ever on their way at once.
const plenty = 1 << 20

// place returns where the forecast for a hash is kept; it may be that of another hash. The part
// must be locked.
func (o *outlook) place(hash uint64) (p *outlookPart, f *forecast) {
	p = &o.parts[hash%outlookParts]
	p.mu.Lock()
	if p.places == nil {
		p.places = new([outlookPlaces]forecast)
	}
	return p, &p.places[hash/outlookParts%outlookPlaces]
}

// of returns the forecast for a hash, or the zero one if nothing is known. In that case, no other
// call is expected to pass until the call that asks has an answer, or its timeout is over.
func (o *outlook) of(hash uint64, now, timeout time.Duration) forecast {
	p, f := o.place(hash)
	defer p.mu.Unlock()
	if f.hash != hash || now >= f.until {
		*f = forecast{hash: hash, until: now + timeout}
		return forecast{}
	}
	return *f
}

// take counts one more call as expected to pass, and returns the forecast before it.
func (o *outlook) take(hash uint64) forecast {
	p, f := o.place(hash)
	defer p.mu.Unlock()
	if f.hash != hash {
		return forecast{}
	}
	before := *f
	if 0 < f.calls && f.calls < plenty {
		f.calls--
	}
	return before
}

// doubts reports whether the next call will probably not pass.
func (f *forecast) doubts() bool { return f.until > 0 && f.calls == 0 }

// learn stores a forecast made from the answer of a shard. A shard that did not answer gets none.
func (o *outlook) learn(hash uint64, counters []algorithm.Counter, verdicts []algorithm.Verdict) {
	calls, lasts, refused := int64(plenty), int64(0), int64(0)
	for i := range counters {
		c, v := &counters[i], &verdicts[i]
		switch {
		case v.Err != nil || v.Ended != nil:
			lasts, calls = 0, 0
		case c.Dry:
		case v.RetryAfter > 0:
			refused = max(refused, v.RetryAfter)
		case c.Cost > 0 && c.Limit.Kind != algorithm.Ban && v.Remaining/c.Cost < calls:
			calls, lasts = v.Remaining/c.Cost, v.ResetAfter
		}
	}
	if refused > 0 {
		calls, lasts = 0, refused
	}
	p, f := o.place(hash)
	defer p.mu.Unlock()
	*f = forecast{hash, calls, refused > 0, time.Since(o.begun) + time.Duration(lasts)*time.Microsecond}
}
