package localfirst

import (
	"math/bits"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
)

const (
	// refusalSets bounds what is remembered: 65,536 counters of refused calls.
	refusalSets = 8192
	// longestRefusal is for how long a refusal is remembered, in microseconds: what other processes do to the key is seen then.
	longestRefusal = 1_000_000
	// mostTogether is of how many counters a call's refusal is remembered at most.
	mostTogether = 4
)

// refusals are the answers to calls that were refused. The answer to a call of several counters is
// remembered as a whole; but of counters that lie on several shards only the answers of those
// shards that refused, or have a ban that has to hear of refusals.
type refusals struct {
	table table[refusal]
}

// refusal is one counter of a refused call, as the store answered for it. It never changes. Times are nanoseconds of
// Store.now, of when this or that will be. Two fields hold two numbers each, so that it has 80 bytes.
type refusal struct {
	key       string
	limit     *algorithm.Limit // as it was asked; limits beyond those that core keeps are kept alive by it
	cost      int64            // its weight times 16, plus 8 where the rest is not known, and how many counters there are from here on
	remaining uint64           // permits, times 2^24, and the changes of those of the call's keys of which the rest is known
	until     int64            // it is repeated before this
	retry     int64
	reset     int64
	began     int64    // when the store's clock stood at zero, in microseconds
	next      *refusal // the next counter of the call
}

// changesKept are the bits of a count of changes that are kept: a key does not change 2^24 times in a second.
const changesKept = 1<<24 - 1

// identity is what a call is looked up by.
type identity struct {
	hash    uint64               // of its keys and costs
	changes [mostTogether]uint32 // of each key until now
}

// changesOf returns the changes of those keys that are known of a refusal.
func (id *identity) changesOf(e *refusal) (sum uint64) {
	for i := 0; e != nil; i, e = i+1, e.next {
		if !e.unknown() {
			sum += uint64(id.changes[i])
		}
	}
	return sum & changesKept
}

// identify says how a call is looked up, if a refusal of it can be remembered at all: when a slot in flight comes back nobody knows,
// and a counter that is only tried has to hear of every call.
func (r *refusals) identify(s *Store, counters []algorithm.Counter) (id identity, lasting bool) {
	if len(counters) > mostTogether {
		return id, false
	}
	for i := range counters {
		c := &counters[i]
		if c.Dry || c.Limit.Kind == algorithm.Concurrency || c.Cost == 0 && c.Limit.Kind != algorithm.Ban {
			return id, false
		}
		hash := s.hash(c.Key)
		id.changes[i] = s.changes.of(hash).Load()
		id.hash = bits.RotateLeft64(id.hash, 7) ^ (hash+uint64(weight(c)))*0x9e3779b97f4a7c15
	}
	return id, true
}

// ofLook returns the identity under which a call is remembered that was only looked at. No ban
// counted its refusal, so it is not repeated to calls whose refusals a ban has to count.
func (id identity) ofLook(counters []algorithm.Counter) identity {
	for i := range counters {
		if counters[i].Limit.Kind == algorithm.Ban {
			id.hash ^= 0x9e3779b97f4a7c15
			break
		}
	}
	return id
}

// weight distinguishes calls of the same counters: it is the cost or, for a ban, a bit for each of
// at most mostTogether counters that it watches.
func weight(c *algorithm.Counter) int64 {
	weight := c.Cost
	for _, at := range c.Watched {
		weight |= 1 << at
	}
	return weight
}

// recall answers a call as it was refused before, if that still holds.
func (r *refusals) recall(s *Store, id identity, counters []algorithm.Counter, verdicts []algorithm.Verdict) bool {
	in := r.table.set(id.hash)
	if in == nil {
		return false
	}
	e := in.find(id.hash, func(e *refusal) bool { return e.of(counters) })
	if e == nil || e.remaining&changesKept != id.changesOf(e) {
		return false
	}
	now := s.now()
	if now >= e.until {
		return false
	}
	for i := range verdicts {
		verdicts[i] = e.answer(now)
		e = e.next
	}
	return true
}

// answer returns what the store would answer now, as far as that is known.
func (e *refusal) answer(now int64) algorithm.Verdict {
	if e.unknown() {
		return algorithm.Verdict{From: algorithm.FromNobody}
	}
	return algorithm.Verdict{
		At: e.began + now/1000, Remaining: int64(e.remaining >> 24), RetryAfter: left(e.retry, now), ResetAfter: left(e.reset, now),
		From: algorithm.FromRefusal,
	}
}

// costField returns the weight of a refusal's counter, combined with whether the counter is unknown
// and how many counters there are from here on.
func costField(weight int64, unknown bool, counters int) int64 {
	cost := weight<<4 | int64(counters)
	if unknown {
		cost |= unknownBit
	}
	return cost
}

const unknownBit = 8

// unknown reports whether this counter is on another shard than those whose answers are remembered.
func (e *refusal) unknown() bool { return e.cost&unknownBit != 0 }

// left is how long it is until then, in microseconds, rounded up: who waits so long is not early.
func left(then, now int64) int64 { return max(0, then-now+999) / 1000 }

// of says whether this is the answer to these very counters.
func (e *refusal) of(counters []algorithm.Counter) bool {
	for i := range counters {
		c := &counters[i]
		if e.cost&^unknownBit != costField(weight(c), false, len(counters)-i) || e.key != string(c.Key) || !e.limit.Equal(c.Limit) {
			return false
		}
		e = e.next
	}
	return true
}

// remember keeps the answer to a call that was sent at a time and has just come back, for as long
// as it holds for sure, and so many microseconds at most.
func (r *refusals) remember(s *Store, id identity, counters []algorithm.Counter, verdicts []algorithm.Verdict, sent, span int64) {
	known := parts(counters, verdicts)
	for i := range counters {
		if known.has(&verdicts[i]) {
			span = min(span, counters[i].Limit.Steady(&verdicts[i], counters[i].Cost))
		}
	}
	now := s.now()
	until := surely(sent, span)
	if until <= now {
		return
	}
	var e *refusal
	for i := len(counters) - 1; i >= 0; i-- {
		c, v := &counters[i], &verdicts[i]
		e = &refusal{
			key: string(c.Key), limit: c.Limit, cost: costField(weight(c), !known.has(v), len(counters)-i), until: until,
			remaining: uint64(v.Remaining) << 24, retry: now + v.RetryAfter*1000, reset: now + v.ResetAfter*1000, began: v.At - now/1000, next: e,
		}
	}
	e.remaining |= id.changesOf(e)
	r.keep(id.hash, e, counters, now)
}

// partSet is a set of a call's shards. There are no more of them than counters.
type partSet uint8

func (p partSet) has(v *algorithm.Verdict) bool { return p>>v.Part&1 == 1 }

// parts returns the shards whose answers a remembered refusal repeats: those that refused, and
// those that have to be asked in each window of a ban. What the others have left changes with every
// call that they let pass.
func parts(counters []algorithm.Counter, verdicts []algorithm.Verdict) (known partSet) {
	for i := range counters {
		if counters[i].Limit.Kind == algorithm.Ban || counters[i].Refuses(&verdicts[i]) {
			known |= 1 << verdicts[i].Part
		}
	}
	return known
}

// forget drops what is remembered of a call.
func (r *refusals) forget(id identity, counters []algorithm.Counter) {
	in := r.table.set(id.hash)
	if in == nil {
		return
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	if e := in.find(id.hash, func(e *refusal) bool { return e.of(counters) }); e != nil {
		in.remove(e)
	}
}

// keep puts a refusal into the table, in place of an earlier one of the same call. What is over goes first, then what nobody asked
// for again: so a flood of callers who are refused once pushes out its own.
func (r *refusals) keep(hash uint64, e *refusal, counters []algorithm.Counter, now int64) {
	in := r.table.setToWrite(hash)
	in.mu.Lock()
	defer in.mu.Unlock()
	in.put(hash, e, func(old *refusal, asked bool) int64 {
		switch {
		case old.of(counters):
			return replace
		case old.until <= now:
			return -1
		case !asked:
			return 0
		default:
			return 1
		}
	})
}
