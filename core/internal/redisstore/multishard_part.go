package redisstore

import (
	"bytes"
	"math"
	"slices"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
)

// shardPart holds the counters of one call that share a hash tag, and with it a shard.
type shardPart struct {
	hash     uint64
	indexes  []int // of the counters in the call
	counters []algorithm.Counter
	asked    []algorithm.Counter // the counters before an answer applied overrides, if they may have any
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
	for _, p := range parts {
		p.watch(counters, false)
		if algorithm.MayHaveOverrides(p.counters) {
			p.asked = p.counters
		}
	}
	return parts
}

// forgetOverrides prepares the part to be asked, possibly again. It undoes the change of an answer,
// which sets the counters to the limits in force.
func (p *shardPart) forgetOverrides() {
	if p.asked != nil {
		p.counters = slices.Clone(p.asked)
	}
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

// watch makes the bans of the part count refusals by its counters, unless strikes are held.
func (p *shardPart) watch(call []algorithm.Counter, held bool) {
	for i, at := range p.indexes {
		var watched []int
		if !held {
			watched = call[at].WatchedIn(p.indexes)
		}
		p.counters[i].Watched = watched
		if p.asked != nil {
			p.asked[i].Watched = watched
		}
	}
}

// hasBan reports whether a ban of this part may count a refusal.
func (p *shardPart) hasBan() bool {
	return slices.ContainsFunc(p.counters, func(c algorithm.Counter) bool { return len(c.Watched) > 0 })
}

// mayStop reports whether an override may stop the whole call; see stops.
func (p *shardPart) mayStop() bool {
	return slices.ContainsFunc(p.counters, func(c algorithm.Counter) bool { return c.Override != nil && !c.Lenient })
}

// stops reports whether this part stops the whole call, because its subject is blocked or the cost
// can never fit.
func (p *shardPart) stops() bool {
	for i := range p.counters {
		if !p.counters[i].Lenient && p.verdicts[i].Stops() {
			return true
		}
	}
	return false
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

// wasLookedAt reports whether the shard was last asked only to look.
func (p *shardPart) wasLookedAt() bool { return p.looked }

// failed reports whether the shard did not answer.
func (p *shardPart) failed() bool { return p.verdicts[0].Err != nil || p.verdicts[0].Ended != nil }

// refuses reports whether this part refuses the whole call.
func (p *shardPart) refuses() bool {
	return !algorithm.Passes(p.counters, p.verdicts)
}

// hasStrike reports whether a ban has to count a refusal by this part.
func (p *shardPart) hasStrike() bool {
	for i := range p.counters {
		if algorithm.Struck(p.counters, p.verdicts, i) {
			return true
		}
	}
	return false
}

// again returns a part to be asked once more, so that its bans count a refusal.
func (p *shardPart) again() *shardPart {
	again := *p
	again.counters, again.verdicts = slices.Clone(p.counters), slices.Clone(p.verdicts)
	return &again
}

// adopt replaces the part's answer by the answer of again.
func (p *shardPart) adopt(again *shardPart) {
	if !again.failed() {
		*p = *again
	}
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
