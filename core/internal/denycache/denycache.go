// Package denycache remembers refusals, so that a caller who tries again is refused without asking
// the shared store.
//
// A refusal is remembered for at most [clock.MaxAge]. It is forgotten earlier, counted from when
// the store was asked, if time alone could change any of its numbers ([algorithm.Limit.Steady]).
// Its waits count from when the answer came. The store read its clock before that, so the waits are
// never too short, and too long by at most the time that the answer took (up to 3.8 ms on a busy
// machine). Comparing the clocks over several answers would shorten the waits, but would make them
// too short while the store's clock is slewed. Changes that this process makes to a key (charges,
// refunds, resets) are seen at once.
package denycache

import (
	"hash/maphash"
	"math/bits"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
	"github.com/accesslimit/accesslimit/core/internal/clock"
	"github.com/accesslimit/accesslimit/core/internal/setassoc"
)

const (
	// sets bounds what is remembered: refused calls of 65,536 counters.
	sets = 8192
	// maxCounters is the largest number of counters of a call that is remembered.
	maxCounters = 4
	// spread is 2^64 divided by the golden ratio: it spreads sums over all bits of a hash.
	spread = 0x9e3779b97f4a7c15
)

// Cache remembers the answers to calls that were refused. The answer to a call of several counters
// is remembered as a whole. If its counters are on several shards, only the answers of shards that
// refused are remembered. A Cache is safe for concurrent use.
type Cache struct {
	clock       *clock.Expiry
	seed        maphash.Seed
	table       setassoc.Table[refusal]
	generations generations
}

// New returns an empty cache.
func New(c *clock.Expiry) *Cache {
	return &Cache{clock: c, seed: maphash.MakeSeed(), table: setassoc.New[refusal](sets)}
}

// Query is the key by which a call is looked up. An answer is remembered under the Query that was
// made before the store was asked, and is not repeated if one of its keys has changed since.
type Query struct {
	hash        uint64 // of the keys and costs
	generations [maxCounters]uint32
	cacheable   bool
}

// Repeat answers an op with a remembered refusal, and reports whether there is one that still holds. If not, it
// fills the zero Query for the op, as of now. A refusal of one permit refuses any cost of UpTo. Neither a charge
// in debt nor a turn can be refused by what is remembered.
func (c *Cache) Repeat(q *Query, op *algorithm.Op) (repeated bool) {
	switch {
	case op.Mode == algorithm.AllOrNone || op.Mode == algorithm.Looks && op.MayRecall:
		c.snapshot(q, op.Counters)
		return c.repeat(q, op.Counters, op.Verdicts)
	case op.Mode == algorithm.UpTo:
		most := op.Counters[0].Cost
		algorithm.SetCost(op.Counters, 1)
		c.snapshot(q, op.Counters)
		if repeated = c.repeat(q, op.Counters, op.Verdicts); !repeated {
			algorithm.SetCost(op.Counters, most)
		}
	}
	return repeated
}

// snapshot fills the zero Query for a call, as of now. Some calls are never remembered: nobody
// knows when a slot in flight comes back, and a soft rule counts the call whoever refuses it.
//
// On the path of a call, queries and verdicts are filled in place. A copy would read several fields
// at once that were just written one by one, for which a processor has to wait.
func (c *Cache) snapshot(q *Query, counters []algorithm.Counter) {
	if len(counters) > maxCounters {
		return
	}
	all := uint64(0)
	for i := range counters {
		counter := &counters[i]
		of := counter.Limit.Properties()
		if counter.Behind != 0 || !of.Remembers || counter.Cost == 0 && of.HasPermits() {
			return
		}
		hash := c.hash(counter.Key)
		q.generations[i] = c.generations.of(hash).Load()
		all = bits.RotateLeft64(all, 7) ^ (hash+uint64(counter.Cost))*spread
	}
	q.hash, q.cacheable = all, true
}

// repeat answers a call with a remembered refusal, and reports whether there is one that still holds.
func (c *Cache) repeat(q *Query, counters []algorithm.Counter, verdicts []algorithm.Verdict) bool {
	if !q.cacheable {
		return false
	}
	r := c.table.Set(q.hash).Find(q.hash, func(r *refusal) bool { return r.isOf(counters) })
	if r == nil || r.generationSum != q.generationSum(r) {
		return false
	}
	now := c.clock.Now()
	if now >= r.expires {
		return false
	}
	for i := range verdicts {
		r.answer(now, &verdicts[i])
		r = r.next
	}
	return true
}

// Invalidate forgets everything that is remembered for a key, including answers that are still on
// their way.
func (c *Cache) Invalidate(key []byte) { c.generations.of(c.hash(key)).Add(1) }

func (c *Cache) hash(key []byte) uint64 { return maphash.Bytes(c.seed, key) }
