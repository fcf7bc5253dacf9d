// Package denycache remembers refusals, so that a caller who tries again is refused without asking
// the shared store.
//
// A refusal is remembered for at most [clock.MaxAge]. It is forgotten earlier if the passing of
// time alone could change any number in it ([algorithm.Limit.Steady]); that time counts from when
// the store was asked. The waits in it count from when the answer came: the store read its clock at
// some moment before that, so they are too long by at most the time that the answer took (up to
// 3.8 ms on a busy machine), and never too short. Comparing the clocks over several answers would
// shorten them, and make them too short while the store's clock is slewed. Changes that this
// process makes to a key (charges, refunds, resets, bans) are seen at once.
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
	// maxCounters is how many counters a call may have to be remembered.
	maxCounters = 4
	// spread is 2^64 divided by the golden ratio: it spreads sums over all bits of a hash.
	spread = 0x9e3779b97f4a7c15
)

// Cache remembers the answers to calls that were refused. The answer to a call of several counters
// is remembered as a whole. But if these lie on several shards, it remembers only the answers of
// shards that refused, and of shards with a ban, which counts refusals. A Cache is safe for
// concurrent use.
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

// Query is what a call is looked up by. An answer is remembered under the Query that was made
// before the store was asked, and is not repeated if a key was changed since.
type Query struct {
	hash        uint64 // of the keys and costs
	generations [maxCounters]uint32
	cacheable   bool
}

// Snapshot fills the zero Query with what to look a call up by, as of now. Some calls are never
// remembered: nobody knows when a slot in flight comes back, a counter in DryRun has to count every
// call, and an override holds for the next call in any process.
//
// On the path of every call, queries and verdicts are filled where they stand. A copy would read
// several fields at once that were just written one by one, and a processor waits for that.
func (c *Cache) Snapshot(q *Query, counters []algorithm.Counter) {
	if len(counters) > maxCounters {
		return
	}
	all := uint64(0)
	for i := range counters {
		counter := &counters[i]
		of := counter.Limit.Properties()
		if counter.Lenient || counter.Override != nil || !of.Remembers || counter.Cost == 0 && !of.Watches {
			return
		}
		hash := c.hash(counter.Key)
		q.generations[i] = c.generations.of(hash).Load()
		all = bits.RotateLeft64(all, 7) ^ (hash+uint64(counter.Cost)+uint64(watchedBits(counter)))*spread
	}
	q.hash, q.cacheable = all, true
}

// forLook returns the Query under which an answer to a call that charges nothing is remembered. No
// ban counted such a refusal, so it is not repeated to calls whose refusals a ban has to count.
func (q Query) forLook(counters []algorithm.Counter) Query {
	for i := range counters {
		if counters[i].Limit.Properties().Watches {
			q.hash ^= spread
			break
		}
	}
	return q
}

// Repeat answers a call as it was refused before. It reports whether such a refusal still holds.
func (c *Cache) Repeat(q *Query, counters []algorithm.Counter, verdicts []algorithm.Verdict) bool {
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

// RepeatLook is [Cache.Repeat] for a call that charges nothing.
func (c *Cache) RepeatLook(q *Query, counters []algorithm.Counter, verdicts []algorithm.Verdict) bool {
	if c.Repeat(q, counters, verdicts) {
		return true
	}
	look := q.forLook(counters)
	return c.Repeat(&look, counters, verdicts)
}

// Invalidate forgets all that is remembered of a key, and all answers that are still on their way.
func (c *Cache) Invalidate(key []byte) { c.generations.of(c.hash(key)).Add(1) }

func (c *Cache) hash(key []byte) uint64 { return maphash.Bytes(c.seed, key) }
