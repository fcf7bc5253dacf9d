package redisstore

import (
	"bytes"
	"math"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
)

// shardPart holds the counters of one call that share a hash tag, and with it a shard.
type shardPart struct {
	hash     uint64
	indexes  []int // of the counters in the call
	counters []algorithm.Counter
	verdicts []algorithm.Verdict
	forecast forecast
	looked   bool
}

// splitByTag splits counters by hash tag, keeping their order.
func splitByTag(counters []algorithm.Counter) (parts []*shardPart) {
	for i := range counters {
		p := partWithTag(parts, hashTag(counters[i].Key))
		if p == nil {
			p = new(shardPart)
			parts = append(parts, p)
		}
		p.indexes = append(p.indexes, i)
		p.counters = append(p.counters, counters[i])
		p.verdicts = append(p.verdicts, algorithm.Verdict{})
	}
	return parts
}

// partsWhere returns the parts that meet a condition.
func partsWhere(parts []*shardPart, is func(*shardPart) bool) (some []*shardPart) {
	for _, p := range parts {
		if is(p) {
			some = append(some, p)
		}
	}
	return some
}

// partWithTag returns the part whose keys have this tag, or nil.
func partWithTag(parts []*shardPart, tag []byte) *shardPart {
	for _, p := range parts {
		if bytes.Equal(hashTag(p.counters[0].Key), tag) {
			return p
		}
	}
	return nil
}

// copyVerdicts copies the part's verdicts to their indexes in the call. number is the part's
// number.
func (p *shardPart) copyVerdicts(verdicts []algorithm.Verdict, number uint8) {
	for i, at := range p.indexes {
		verdicts[at] = p.verdicts[i]
		verdicts[at].Part = number
	}
}

// smallestMax returns the smallest Max of the counters that can be charged.
func (p *shardPart) smallestMax() int64 {
	smallest := int64(math.MaxInt64)
	for i := range p.counters {
		if c := &p.counters[i]; c.Charges() {
			smallest = min(smallest, c.Limit.Max)
		}
	}
	return smallest
}

// isBehind reports whether all counters are behind those of other parts: see algorithm.Counter.
func (p *shardPart) isBehind() bool { return p.counters[0].Behind != 0 }

// wasLookedAt reports whether the shard was last asked only to look.
func (p *shardPart) wasLookedAt() bool { return p.looked }

// failed reports whether the shard did not answer.
func (p *shardPart) failed() bool { return p.verdicts[0].Err != nil || p.verdicts[0].Ended != nil }

// refuses reports whether this part refuses the whole call.
func (p *shardPart) refuses() bool {
	return !algorithm.Passes(p.counters, p.verdicts)
}

// charges returns what this part's shard charged. The charges have copies of the keys, because
// giving back outlives the call.
func (p *shardPart) charges() (charges []algorithm.Charge) {
	for i := range p.counters {
		if c := p.counters[i].Charged(&p.verdicts[i]); c.Cost > 0 {
			c.Key = bytes.Clone(c.Key)
			charges = append(charges, c)
		}
	}
	return charges
}

// showGivenBack changes the call's verdicts as if this part's charges had been given back.
func (p *shardPart) showGivenBack(verdicts []algorithm.Verdict) {
	for i, at := range p.indexes {
		p.counters[i].Uncharge(&verdicts[at])
	}
}
