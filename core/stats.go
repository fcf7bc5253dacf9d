package core

import (
	"cmp"
	"slices"

	"github.com/accesslimit/accesslimit/core/internal/failure"
)

// Stats are the counts of a Limiter since it was made. See [Limiter.Stats]. encoding/json and
// expvar show them as they are. Counts never go back, and start at zero with the process.
type Stats struct {
	// Decisions are the counts of decisions, in order of Rule, Reason and Source. Decisions that
	// never occurred are left out.
	//
	// A call counts once for each rule that took part in it, however many limits the rule has, with
	// the decision of that rule by itself. So a rule that allows a call which another one refuses
	// counts as allowed. Rules in DryRun count too.
	//
	// A rule does not count if the call costs it nothing or is Unlimited by it, or if it was not
	// asked because another rule refused as it did before. A call that is refused for another
	// reason than a limit (such as a missing login) counts only for the rule that gave the reason.
	// A direct call counts if it charges and ends without an error.
	Decisions []DecisionCount
	// Keys is the number of counters that this process keeps now: all of them without Redis, and
	// with Redis those that CountLocally counted here.
	Keys int
	// Evictions is the number of counters that were forgotten though they still counted, because
	// there were more than Options.MaxKeys. Their callers started afresh.
	Evictions uint64
	// Trips is the number of round trips to Redis that decided over calls, repeated ones included,
	// or 0 without Redis. One trip can carry hundreds of scripts. Refunds, resets, bans,
	// reservations and renewals are not included.
	Trips uint64
	// Calls is the number of calls in these trips. A lease of any size is one. Calls that the deny
	// cache or a lease answered are in Decisions only.
	Calls uint64
	// Merged is the number of Calls that shared the script call of another call on the same
	// counters.
	Merged uint64
	// StoreErrors are the failures of Redis to answer, in order of their class. Classes that never
	// occurred are left out. Each rule of a call, each direct call, and each attempt to give back
	// or to renew counts once.
	StoreErrors []StoreErrorCount
	// Shards are the Redis servers that calls went to, in order of their addresses: one, or those
	// of a cluster or a ring, including servers that are no longer in use. Until a server has named
	// the slots of a cluster, there is one entry, for all addresses in the client's options. A
	// client of a type of your own has no entries, and no breaker.
	Shards []ShardStats
	// Losses is the number of times that a server was found to have been restarted, or replaced by
	// a replica. Counters that it had not saved or replicated were lost. The library finds this out
	// by INFO, so Losses stays 0 if its Redis user may not call that.
	Losses uint64
}

// DecisionCount is the number of times that one rule decided in one way. Rules of one name are
// counted as one.
type DecisionCount struct {
	// Rule is the Decision's Rule: the name of the rule or the handle. It is OtherNames for those
	// beyond 4,000 names of rules, or 1,000 of handles, in the order in which they are used.
	Rule string
	// Reason is the Decision's Reason.
	Reason Reason
	// Source is the Decision's Source.
	Source Source
	// Count is the number of calls that the rule decided in this way.
	Count uint64
	// Bound is the number of these calls that were answered with this decision. If several
	// rules decide a call, the answer is that of the rule that refused or, if all allowed it, of
	// the rule with the fewest permits left. OnDecision receives the same one. The sum of Bound
	// over all rules is the number of calls that were decided. A rule in DryRun never binds, so
	// calls that only such rules looked at are not in the sum.
	Bound uint64
}

// StoreErrorCount is the number of times that Redis did not answer, for one class of reasons.
type StoreErrorCount struct {
	Class StoreErrorClass
	Count uint64
}

// ShardStats is the state of one Redis server.
type ShardStats struct {
	// Addr is the server's address as the client has it, or FailoverClient for the master that
	// Sentinel names.
	Addr string
	// Breaker is "closed" if calls are made. It is "open" if none are, because none got an answer
	// for a while: each call gets its rule's policy at once. It is "half-open" if one call is tried
	// next, or is being tried. The texts are stable, for metrics.
	Breaker string
	// Opened is the number of times that the breaker opened.
	Opened uint64
}

// OtherNames is the Rule under which Stats counts all names beyond its bounds together. Without
// bounds, callers who choose names could fill the memory, or a metrics server.
const OtherNames = "(other names)"

// keyCounter is a store that keeps its counters in this process.
type keyCounter interface {
	Len() int
	Evictions() uint64
}

// Stats returns the counts of the Limiter so far. It is safe for concurrent use and cheap enough to
// be called every second; calls do not wait for it. Counts are exact, but each is read at its own
// moment: a call that is being decided may be in one and not yet in another.
//
// With expvar, one line shows all of it:
//
//	expvar.Publish("accesslimit", expvar.Func(func() any { return limiter.Stats() }))
//
// A Prometheus collector makes a counter of each entry, in its Collect:
//
//	for _, d := range limiter.Stats().Decisions {
//		ch <- prometheus.MustNewConstMetric(desc, prometheus.CounterValue, float64(d.Count),
//			d.Rule, string(d.Reason), string(d.Source))
//	}
func (l *Limiter) Stats() Stats {
	l.mustBeMade()
	entries := l.tallies.Snapshot()
	s := Stats{Decisions: make([]DecisionCount, 0, len(entries))}
	for _, e := range entries {
		s.Decisions = append(s.Decisions, DecisionCount{e.Name, Reason(e.Reason), Source(e.Source), e.Count, e.Bound})
	}
	if local, ok := l.store.(keyCounter); ok {
		s.Keys, s.Evictions = local.Len(), local.Evictions()
	}
	if l.redis != nil {
		s.Trips, s.Calls, s.Merged = l.redis.Trips()
		s.Losses = l.redis.Losses()
		for _, shard := range l.redis.Shards() {
			s.Shards = append(s.Shards, ShardStats{shard.Addr, string(shard.Breaker), shard.Opened})
		}
	}
	l.failures.Each(func(class failure.Class, count uint64) {
		s.StoreErrors = append(s.StoreErrors, StoreErrorCount{StoreErrorClass(class), count})
	})
	slices.SortFunc(s.StoreErrors, func(a, b StoreErrorCount) int { return cmp.Compare(a.Class, b.Class) })
	return s
}
