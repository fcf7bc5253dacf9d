package denycache

import (
	"time"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
	"github.com/accesslimit/accesslimit/core/internal/clock"
	"github.com/accesslimit/accesslimit/core/internal/setassoc"
)

// maxAge is the longest time, in microseconds, for which a refusal is remembered.
const maxAge = int64(clock.MaxAge / time.Microsecond)

// Observe learns from the store's answer to a call that was to be charged, and was sent at the
// given time: a refusal is remembered if it lasts, and a charge invalidates the call's keys.
func (c *Cache) Observe(q *Query, counters []algorithm.Counter, verdicts []algorithm.Verdict, sent int64) {
	c.observeStrikes(q, counters, verdicts)
	switch {
	case !refused(counters, verdicts):
		for i := range counters {
			c.Invalidate(counters[i].Key)
		}
	case q.cacheable:
		c.remember(q, counters, verdicts, sent, maxAge)
		c.rememberForAll(q, counters, verdicts, sent)
	}
}

// observeStrikes invalidates the bans that counted this refusal: other calls with such a ban must
// not repeat older refusals. The call at hand may.
func (c *Cache) observeStrikes(q *Query, counters []algorithm.Counter, verdicts []algorithm.Verdict) {
	for i := range counters {
		if verdicts[i].Struck {
			c.Invalidate(counters[i].Key)
			if q.cacheable {
				q.generations[i]++
			}
		}
	}
}

// ObserveLook is [Cache.Observe] for a call that charges nothing.
func (c *Cache) ObserveLook(q *Query, counters []algorithm.Counter, verdicts []algorithm.Verdict, sent int64) {
	if !q.cacheable || !refused(counters, verdicts) {
		return
	}
	look := q.forLook(counters)
	c.remember(&look, counters, verdicts, sent, maxAge)
	if look == *q {
		c.rememberForAll(q, counters, verdicts, sent)
	}
}

// refused reports whether the store refused, and answered for all of the counters. Then nothing was
// charged.
func refused(counters []algorithm.Counter, verdicts []algorithm.Verdict) bool {
	for i := range verdicts {
		if verdicts[i].Err != nil || verdicts[i].Ended != nil {
			return false
		}
	}
	return !algorithm.Passes(counters, verdicts)
}

// rememberForAll remembers a refusal for calls by other callers, if a counter that does not depend
// on the caller refused. It does not if another counter refused too, whose refusal would be left
// out. Bans among the other counters have to be asked in each of their windows.
func (c *Cache) rememberForAll(q *Query, counters []algorithm.Counter, verdicts []algorithm.Verdict, sent int64) {
	var places []int
	span, sharedOnly := maxAge, true
	for i := range counters {
		counter, v := &counters[i], &verdicts[i]
		switch {
		case !counter.Personal:
			places = append(places, i)
		case v.RetryAfter > 0:
			sharedOnly = false
		case counter.Limit.Properties().Watches:
			span = min(span, counter.Limit.Steady(v, counter.Cost))
		}
	}
	if len(places) == 0 || len(places) == len(counters) {
		return
	}
	forAll, shared, answers := c.part(q, counters, verdicts, places)
	if sharedOnly {
		c.remember(&forAll, shared, answers, sent, span)
	} else {
		c.forget(&forAll, shared)
	}
}

// part returns the part of a call that consists of the counters at these places, as of when q was
// made.
func (c *Cache) part(q *Query, counters []algorithm.Counter, verdicts []algorithm.Verdict, places []int) (part Query, of []algorithm.Counter, answers []algorithm.Verdict) {
	of, answers = make([]algorithm.Counter, len(places)), make([]algorithm.Verdict, len(places))
	for n, i := range places {
		of[n], answers[n] = counters[i], verdicts[i]
		of[n].Watched = counters[i].WatchedIn(places)
	}
	c.Snapshot(&part, of)
	for n, i := range places {
		part.generations[n] = q.generations[i]
	}
	return part, of, answers
}

// remember adds the answer to a call that was sent at the given time and has just come back. The
// answer is kept until time alone could change it, and for span microseconds at most.
func (c *Cache) remember(q *Query, counters []algorithm.Counter, verdicts []algorithm.Verdict, sent, span int64) {
	known := answering(counters, verdicts)
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

// put adds a refusal in place of an earlier one of the same call. Otherwise it replaces one that
// has expired, or else one that nobody asked for again: so a flood of callers who are refused once
// replaces its own refusals.
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

// answering returns the shards whose answers a remembered refusal repeats: those that refused, and
// those that have to be asked in each window of a ban. The permits that are left on the others
// change with every call that they let pass.
func answering(counters []algorithm.Counter, verdicts []algorithm.Verdict) (known shardSet) {
	for i := range counters {
		if counters[i].Limit.Properties().Watches || counters[i].Refuses(&verdicts[i]) {
			known |= 1 << verdicts[i].Part
		}
	}
	return known
}
