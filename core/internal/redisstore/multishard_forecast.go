package redisstore

import (
	"sync"
	"time"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
)

// forecastTable holds what this process expects of the counters of calls over several shards: how
// many more calls will probably pass. It decides nothing, so it may be wrong. It only determines
// whether the shards of a call are asked at the same time, or the one that will probably refuse
// first.
//
// A caller without a forecast is expected to pass once. So of many simultaneous calls by one
// caller, only one asks its shards at the same time, and its answer shows whether the others may
// too.
type forecastTable struct {
	start   time.Time
	stripes [stripeCount]forecastStripe
}

// Together the stripes hold 32,768 forecasts of 32 bytes each. Two hashes with the same entry
// overwrite each other's forecast.
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
	calls   int64         // how many more calls will probably pass
	refused bool          // whether the last call was refused
	until   time.Duration // when the forecast expires, since the table's start
}

// manyCalls is more calls than are ever in flight at once, so they need not be counted.
const manyCalls = 1 << 20

// findLikelyRefuser returns the part that will probably refuse the call, or nil if all will
// probably let it pass.
func (s *Store) findLikelyRefuser(parts []*shardPart) *shardPart {
	now := time.Since(s.forecasts.start)
	for _, p := range parts {
		p.hash = s.hashKeys(p.counters)
		for i := range p.counters {
			p.hash = p.hash*31 + uint64(p.counters[i].Cost)
		}
		p.forecast = s.forecasts.lookup(p.hash, now, s.timeout)
	}
	if p := likeliestRefuser(parts); p != nil {
		return p
	}
	for _, p := range parts {
		if p.forecast.until > 0 {
			p.forecast = s.forecasts.expectPass(p.hash)
		}
	}
	return likeliestRefuser(parts)
}

// likeliestRefuser returns the part that refused a call before; of several such parts, the one that
// will refuse for the longest time. If there is none, it returns a part that is used up, or that
// was asked for the first time and has not answered yet; of several such parts, the one with the
// smallest limit, which most likely belongs to a single caller.
func likeliestRefuser(parts []*shardPart) (first *shardPart) {
	for _, p := range parts {
		if p.forecast.expectsRefusal() && (first == nil || p.isLikelierRefuser(first)) {
			first = p
		}
	}
	return first
}

func (p *shardPart) isLikelierRefuser(than *shardPart) bool {
	a, b := &p.forecast, &than.forecast
	switch {
	case a.refused != b.refused:
		return a.refused
	case a.refused:
		return a.until > b.until
	default:
		return p.smallestMax() < than.smallestMax()
	}
}

// lockEntry locks the stripe of a hash, and returns it with the entry for the hash. The entry may
// hold the forecast of another hash.
func (t *forecastTable) lockEntry(hash uint64) (stripe *forecastStripe, f *forecast) {
	stripe = &t.stripes[hash%stripeCount]
	stripe.mu.Lock()
	if stripe.entries == nil {
		stripe.entries = new([stripeSize]forecast)
	}
	return stripe, &stripe.entries[hash/stripeCount%stripeSize]
}

// lookup returns the forecast for a hash, or the zero forecast if nothing is known. In that case,
// no other call is expected to pass until this one has an answer or its timeout is over.
func (t *forecastTable) lookup(hash uint64, now, timeout time.Duration) forecast {
	stripe, f := t.lockEntry(hash)
	defer stripe.mu.Unlock()
	if f.hash != hash || now >= f.until {
		*f = forecast{hash: hash, until: now + timeout}
		return forecast{}
	}
	return *f
}

// expectPass counts one more call as expected to pass, and returns the forecast before it.
func (t *forecastTable) expectPass(hash uint64) forecast {
	stripe, f := t.lockEntry(hash)
	defer stripe.mu.Unlock()
	if f.hash != hash {
		return forecast{}
	}
	before := *f
	if 0 < f.calls && f.calls < manyCalls {
		f.calls--
	}
	return before
}

// expectsRefusal reports whether the next call will probably not pass.
func (f *forecast) expectsRefusal() bool { return f.until > 0 && f.calls == 0 }

// record stores a forecast made from the answer of a shard. It stores nothing if the shard did not
// answer.
func (t *forecastTable) record(hash uint64, counters []algorithm.Counter, verdicts []algorithm.Verdict) {
	calls, validFor, refusedFor := int64(manyCalls), int64(0), int64(0)
	for i := range counters {
		c, v := &counters[i], &verdicts[i]
		switch {
		case v.Err != nil || v.Ended != nil:
			calls, validFor = 0, 0
		case c.Behind != 0:
		case v.RetryAfter > 0:
			refusedFor = max(refusedFor, v.RetryAfter)
		case c.Charges() && v.Remaining/c.Cost < calls:
			calls, validFor = v.Remaining/c.Cost, v.ResetAfter
		}
	}
	if refusedFor > 0 {
		calls, validFor = 0, refusedFor
	}
	stripe, f := t.lockEntry(hash)
	defer stripe.mu.Unlock()
	*f = forecast{hash, calls, refusedFor > 0, time.Since(t.start) + time.Duration(validFor)*time.Microsecond}
}
