package core

import (
	"cmp"
	"slices"
)

// Stats is what a Limiter did since it was made, as [Limiter.Stats] found it. It has the form in which encoding/json and expvar
// show it best. What counts up never goes back, and starts at zero with the process.
type Stats struct {
	// Decisions holds the counts of decisions, in order of their Rule, Reason and Source; those
	// that never occurred are left out.
	//
	// A call counts once for each rule that took part in it, however many limits the rule has, with
	// the decision of that rule by itself: a rule that allows a call which another one refuses
	// counts as allowed. Rules in DryRun count, too. A rule does not count if the call costs it
	// nothing or is Unlimited by it, or if it was not asked because another rule refused as it did
	// before. A call that is refused for another reason than a limit (not logged in, say) counts
	// only for the rule that gave the reason. A direct call counts if it charges and ends without
	// an error.
	Decisions []DecisionCount
	// Keys is how many counters this process keeps now: all of them without Redis, with it those that CountLocally counted here.
	Keys int
	// Evictions counts the counters that were forgotten though they still counted, because there were more than
	// Options.MaxKeys: their callers started afresh.
	Evictions uint64
	// Trips counts round trips to Redis to decide over calls, those that had to be repeated too; 0 without Redis. One can carry
	// hundreds of scripts. Refunds, resets, bans, reservations and renewals are not in it.
	Trips uint64
	// Calls counts the calls that went there; a lease of any size is one. What the deny cache or a lease answered is in
	// Decisions only.
	Calls uint64
	// Merged counts the Calls that shared the script call of another that asked the same.
	Merged uint64
	// StoreErrors are how often Redis did not answer, in order of the class; those that never occurred are left out. Each rule of a call,
	// each direct call, and each attempt to give back or to renew counts once.
	StoreErrors []StoreErrorCount
	// Shards are the Redis servers that calls went to, in order of their addresses: one, or those of a cluster or a ring, with those that
	// are not in use any more. A client of another type has none, and no breaker. Until a server has told
	// the slots of a cluster, there is one entry, for all addresses of the client's options.
	Shards []ShardStats
	// Losses counts how often a server was found to have been restarted, or replaced by a replica: what it had not saved or replicated was
	// lost. It is found out by INFO, so it stays 0 where our user may not call that.
	Losses uint64
}

// DecisionCount is how often one rule decided in one way. Rules of one name are counted as one.
type DecisionCount struct {
	// Rule is the Decision's: the name of the rule, or of a direct call; OtherNames for those beyond 1,000 names of direct
	// calls, or 4,000 of rules, in the order in which they come.
	Rule string
	// Reason is the Decision's.
	Reason Reason
	// Source is the Decision's.
	Source Source
	// Count is how many calls the rule decided in this way.
	Count uint64
	// Bound is how many of them were answered with this decision. Of several rules, the one that
	// refused answers or, if all allowed the call, the one with the fewest permits left; OnDecision
	// receives the same one. The sum of Bound over all rules is the number of calls that were
	// decided. A rule in DryRun never binds, so calls that only such rules looked at are not in the
	// sum.
	Bound uint64
}

// StoreErrorCount is how often Redis did not answer for one kind of reason.
type StoreErrorCount struct {
	Class StoreErrorClass
	Count uint64
}

// ShardStats is how one Redis server is doing.
type ShardStats struct {
	// Addr is the server's address as the client has it; FailoverClient for the master that Sentinel names.
	Addr string
	// Breaker is "closed" if calls are made. It is "open" if none is, because for a while none got
	// an answer: each call gets its rule's policy at once. It is "half-open" if one call is let
	// through next, or is under way, to see. The texts are stable, for metrics.
	Breaker string
	// Opened is how often the breaker opened.
	Opened uint64
}

// OtherNames is the Rule under which Stats counts together what it cannot count apart: callers may choose the names of direct
// calls, and they are not to fill the memory, or a metrics server.
const OtherNames = "(other names)"

// keyCounter is a store that keeps its counters in this process.
type keyCounter interface {
	Len() int
	Evictions() uint64
}

// Stats says what the Limiter did so far. It is safe for concurrent use and cheap enough to be asked every second; calls do not
// wait for it. Counts are exact, but each is read at its own moment: a call that is being decided may be in one and not yet
// in another.
//
// With expvar, one line shows all of it:
//
//	expvar.Publish("accesslimit", expvar.Func(func() any { return limiter.Stats() }))
//
// A Prometheus collector makes a counter of each entry, in its Collect:
//
//	for _, d := range limiter.Stats().Decisions {
//		ch <- prometheus.MustNewConstMetric(desc, prometheus.CounterValue, float64(d.Count), d.Rule, string(d.Reason), string(d.Source))
//	}
func (l *Limiter) Stats() Stats {
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
	for class := range l.failures {
		if n := l.failures[class].Load(); n > 0 {
			s.StoreErrors = append(s.StoreErrors, StoreErrorCount{storeErrorClasses[class], n})
		}
	}
	slices.SortFunc(s.StoreErrors, func(a, b StoreErrorCount) int { return cmp.Compare(a.Class, b.Class) })
	return s
}
