package denycache

import (
	"time"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
	"github.com/accesslimit/accesslimit/core/internal/clock"
	"github.com/accesslimit/accesslimit/core/internal/setassoc"
)

// maxAge is how long a refusal is remembered at most, in microseconds.
const maxAge = int64(clock.MaxAge / time.Microsecond)

// Observe updates the cache with the store's answer to an op; sent is when it was sent. It remembers a refusal
// that lasts. A charge invalidates the op's keys.
func (c *Cache) Observe(q *Query, op *algorithm.Op, sent int64) {
	switch {
	case op.Mode == algorithm.InDebt || op.Mode == algorithm.InTurn || op.Charges() && !refused(op.Counters, op.Verdicts):
		for i := range op.Counters {
			c.Invalidate(op.Counters[i].Key)
		}
	case q.cacheable && refused(op.Counters, op.Verdicts):
		c.remember(q, op.Counters, op.Verdicts, sent)
		c.rememberForAll(q, op.Counters, op.Verdicts, sent)
	}
}

// refused reports whether the store answered for all counters and refused the call, so that nothing
// was charged.
func refused(counters []algorithm.Counter, verdicts []algorithm.Verdict) bool {
	for i := range verdicts {
		if verdicts[i].Err != nil || verdicts[i].Ended != nil {
			return false
		}
	}
	return !algorithm.Passes(counters, verdicts)
}

// rememberForAll remembers a refusal for other callers too, if only counters that do not depend on
// the caller refused. If another counter refused too, its refusal would be missing, so nothing is
// remembered.
func (c *Cache) rememberForAll(q *Query, counters []algorithm.Counter, verdicts []algorithm.Verdict, sent int64) {
	var indexes []int
	sharedOnly := true
	for i := range counters {
		counter, v := &counters[i], &verdicts[i]
		switch {
		case !counter.Personal:
			indexes = append(indexes, i)
		case v.RetryAfter > 0:
			sharedOnly = false
		}
	}
	if len(indexes) == 0 || len(indexes) == len(counters) {
		return
	}
	forAll, shared, answers := c.subset(q, counters, verdicts, indexes)
	if sharedOnly {
		c.remember(&forAll, shared, answers, sent)
	} else {
		c.forget(&forAll, shared)
	}
}

// subset returns the query for a subset of the counters, with q's generations.
func (c *Cache) subset(q *Query, counters []algorithm.Counter, verdicts []algorithm.Verdict, indexes []int) (sub Query, of []algorithm.Counter, answers []algorithm.Verdict) {
	of, answers = make([]algorithm.Counter, len(indexes)), make([]algorithm.Verdict, len(indexes))
	for n, i := range indexes {
		of[n], answers[n] = counters[i], verdicts[i]
	}
	c.snapshot(&sub, of)
	for n, i := range indexes {
		sub.generations[n] = q.generations[i]
	}
	return sub, of, answers
}

// remember adds an answer that has just come back to a call that left at the time sent. It is kept
// until time alone could change it, and for at most maxAge.
func (c *Cache) remember(q *Query, counters []algorithm.Counter, verdicts []algorithm.Verdict, sent int64) {
	known, span := answering(counters, verdicts), maxAge
	for i := range counters {
		if known.has(&verdicts[i]) {
			span = min(span, counters[i].Limit.Steady(&verdicts[i], counters[i].Cost))
		}
	}
	now, expires := c.clock.Now(), clock.Expires(sent, span)
	if expires <= now {
		return
	}
	r := newRefusal(counters, verdicts, known, expires, now)
	r.generationSum = q.generationSum(r)
	c.put(q.hash, r, counters, now)
}

// put adds a refusal. It replaces an earlier refusal of the same call, else an expired one, else
// one that was not used again. So a flood of callers who are refused once replaces its own
// refusals.
func (c *Cache) put(hash uint64, r *refusal, counters []algorithm.Counter, now int64) {
	set := c.table.SetForWriting(hash)
	set.Lock()
	defer set.Unlock()
	const expired, unused, used = 0, 1, 2
	set.Put(hash, r, func(old *refusal, found bool) int64 {
		switch {
		case old.isOf(counters):
			return setassoc.Replaced
		case old.expires <= now:
			return expired
		case !found:
			return unused
		default:
			return used
		}
	})
}

// forget removes what is remembered of a call.
func (c *Cache) forget(q *Query, counters []algorithm.Counter) {
	set := c.table.Set(q.hash)
	if set == nil {
		return
	}
	set.Lock()
	defer set.Unlock()
	if r := set.Find(q.hash, func(r *refusal) bool { return r.isOf(counters) }); r != nil {
		set.Remove(r)
	}
}

// shardSet is a set of a call's shards. A call has no more of them than counters.
type shardSet uint8

func (s shardSet) has(v *algorithm.Verdict) bool { return s>>v.Part&1 == 1 }

// answering returns the shards whose answers a remembered refusal repeats: those that refused. The
// other shards' answers change with every call that they let pass.
func answering(counters []algorithm.Counter, verdicts []algorithm.Verdict) (known shardSet) {
	for i := range counters {
		if counters[i].Refuses(&verdicts[i]) {
			known |= 1 << verdicts[i].Part
		}
	}
	return known
}
