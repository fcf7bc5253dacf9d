package core

import (
	"time"

	"github.com/accesslimit/accesslimit/core/internal/limiter"
	"github.com/accesslimit/accesslimit/core/internal/redisstore"
	"github.com/accesslimit/accesslimit/core/internal/tally"
)

// Stats are the counts of a Limiter since it was made. See [Limiter.Stats]. encoding/json and
// expvar show them as they are. Counts start at zero with the process and never decrease. There is
// one exception: once no Guard follows a rule of a [RuleSet] any more, the next Replace removes its
// counts. If its name comes back, it starts at zero again.
type Stats struct {
	// Decisions are the counts of decisions, in order of Rule, Reason and Source. Decisions that
	// never occurred are left out.
	//
	// A call counts once for each rule that took part in it, however many limits the rule has, with
	// the decision of that rule by itself. So a rule that allows a call which another one refuses
	// counts as allowed. Rules in DryRun count every call, when they have decided it: see DryRuns.
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
	// RefundsLost is the number of permits that may have counted still when they were refunded, but
	// were not given back: of TokenBuckets because later charges were given back before, and of windows
	// because the store's clock had stepped back. See [Limiter.Refund] and COSTS.md.
	RefundsLost uint64
	// DebtExceeded is the number of permits that were not charged because they exceed the bound of a
	// limit's debt. See [Counter.Charge] and [Bill]. Permits that neither Bill.Add nor Bill.Settle could
	// charge are counted twice if these were called in two processes. One call adds at most 2^40, which
	// is more than a counter holds.
	DebtExceeded uint64
	// Trips is the number of round trips to Redis that decided calls, repeated ones included,
	// or 0 without Redis. One trip can carry hundreds of scripts. Refunds, resets, bans,
	// reservations and renewals are not included.
	Trips uint64
	// Calls is the number of calls in these trips. A lease of any size is one. Calls that the deny
	// cache or a lease answered are in Decisions only.
	Calls uint64
	// StoreTime is how long calls waited for Redis, in buckets from 50 µs to 1 s. The wait begins
	// when a call asks, and ends with an answer or an error, or when the caller leaves. A call
	// counts once for each server that it asked, and a lease once. Calls that a breaker answered
	// are left out, because Redis was not asked, and so are operations that are not in Trips.
	// Without Redis, StoreTime is the zero Histogram.
	StoreTime Histogram
	// Merged is the number of Calls that shared the script call of another call on the same
	// counters.
	Merged uint64
	// StoreErrors are the numbers of times that Redis did not answer, by class. Classes that never
	// occurred are left out. Each rule of a call, each direct call, and each attempt to give back
	// or to renew counts once.
	StoreErrors map[StoreErrorClass]uint64
	// Shards are the Redis servers that calls went to, in order of their addresses: one, or those
	// of a cluster or a ring, including servers that are no longer in use. Until a server has named
	// the slots of a cluster, there is one entry, for all addresses in the client's options. A
	// client of a type of your own has no entries, and no breaker.
	Shards []ShardStats
	// Losses is the number of times that a server was found to have lost all of its data, or the
	// latest writes: counters, bans, overrides, the audit, and the document with the rules. The log
	// says which. A restart with all data, and a failover to a replica that has them, are no losses.
	// This is found out by a key that is renewed every ten seconds while calls are made.
	Losses uint64
	// DryRuns are, by the names of rules in DryRun, how long after the answer to a call they decided it.
	// DryRunsDropped are the numbers of calls that they did not decide, because 1,000 were waiting.
	// DryRunsNow is the number of calls that they decide now, or for which they settle or give
	// something back.
	DryRuns        map[string]Histogram
	DryRunsDropped map[string]uint64
	DryRunsNow     int
	// Costs are the counts of costs that are known afterwards, in order of Rule.
	Costs []CostStats
	// Outgoing are the counts of calls that go out, in order of Rule: see package outgoing.
	Outgoing []OutgoingStats
	// RuleSets are the sets of rules that guards follow, in the order in which their first guards
	// were made.
	RuleSets []RuleSetStats
}

// DecisionCount is the number of times that one rule decided in one way. Rules of one name are
// counted as one.
type DecisionCount struct {
	// Rule is the Decision's Rule: the name of the rule or the handle, in UTF-8, and with a digest
	// in place of its end if it is longer than 200 bytes. It is OtherNames for those beyond 4,000
	// names of rules, 2,000 routes of a rule, or 1,000 handles, in the order in which they are used,
	// and for routes that callers may have made up.
	Rule string
	// Reason is the Decision's Reason.
	Reason Reason
	// Source is the Decision's Source.
	Source Source
	// Count is the number of calls that the rule decided in this way.
	Count uint64
	// Bound is the number of these calls that were answered with this decision. If several rules
	// decide a call, the answer is that of the rule that refused. If all allowed it, the answer is
	// that of an exceeded rule in Soft, or else of the rule with the fewest permits left.
	// OnDecision receives the same one. The sum of Bound over all rules is the number of calls that
	// were decided. A rule in DryRun never binds, so calls that only such rules decided are not in
	// the sum.
	Bound uint64
	// Near is the number of these calls that left a limit of the rule nearly used up: after the
	// charge, at least 80 % of its Max, or of its Burst for a TokenBucket, was in use. Only charged
	// calls are near a limit, and not those that CountLocally counted in this process.
	Near uint64
	// Refused is the number of these calls that a rule in force refused. Only a rule in DryRun has it:
	// of the calls that it would have refused, so many are refused already.
	Refused uint64
}

// CostStats are this process's counts of costs that are known afterwards, by one rule or handle. How
// many bills are open is not known without a scan of Redis: over all processes, bills that were opened
// but not settled are open, or closed at what they were charged. A call by [Rule].Estimate counts
// as a bill. If it does not count by [Rule].Count, that is a bill settled at 0.
type CostStats struct {
	// Rule is the name of the rule or the handle, as in DecisionCount.
	Rule string
	// Opened is the number of bills that this process opened, and Estimated the permits that they were
	// charged then.
	Opened, Estimated uint64
	// Settled is the number of bills that this process settled, SettledEstimates the permits that these
	// were charged when they were opened, and Used those that were used in all, at most 2^40 of a bill.
	Settled, SettledEstimates, Used uint64
	// Unknown is the number of times that Settle returned ErrBillUnknown, because the bill had expired or
	// the reply had ended, or Redis had lost the bill.
	Unknown uint64
	// DebtExceeded is this rule's or handle's part of Stats.DebtExceeded.
	DebtExceeded uint64
}

// OutgoingStats are the counts of this process's calls that go out by one rule. Decisions counts them
// too, with the reasons Allowed, LimitExceeded, Banned (for a pause) and StoreFailClosed.
type OutgoingStats struct {
	// Rule is the name of the rule, in the form that DecisionCount has.
	Rule string
	// Sent is the number of calls that got a turn. GaveUp is the number of those that would have had
	// to wait too long.
	Sent, GaveUp uint64
	// Refused is the number of calls that the server refused because of a limit.
	Refused uint64
	// Pauses is the number of times that this process began a pause, or made one longer.
	Pauses uint64
	// Waited is the number of calls that had to wait, and WaitTime the sum of their waits.
	Waited   uint64
	WaitTime time.Duration
	// Waiting is the number of calls that wait now, or are just asking.
	Waiting int
}

// Histogram counts how long something took.
type Histogram struct {
	// Bounds are the upper bounds of the buckets in seconds, ascending. A bucket includes its
	// bound. They are the same in every process, and change only with a release.
	Bounds []float64
	// Counts are the numbers of observations in each bucket. The last one, which has no bound in
	// Bounds, is the number of those above all bounds.
	Counts []uint64
	// Count is the number of all observations, and Sum is their total in seconds.
	Count uint64
	Sum   float64
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

// RuleSetStats is the state of one [RuleSet].
type RuleSetStats struct {
	// Names are the names of the rules that guards follow, sorted.
	Names []string
	// Version is the version in force: what [RuleSet.Replace] was given, or "" before. Like a Digest, it
	// is shown in UTF-8 and at most 200 bytes, as names are.
	Version string
	// Document is the prefix of the document that the set follows, as rulefile.NewDocument takes
	// it, also while a fallback is in force. It is "" if the set follows none.
	Document string
	// Digest identifies the text of the rules in force. Processes that follow one document, or the
	// same files, limit alike if they have one Digest, even if the text was published twice. If the
	// rules have no text, it is the Version.
	Digest string
	// Since is when this process began to use it.
	Since time.Time
	// Fallback reports whether the rules in force are those of a fallback: see rulefile.Follow.
	Fallback bool
	// Problem is why the latest rules are not in force, or "" if they are. It is "wrong" if they
	// have a mistake, and "unread" if Redis or a file cannot be read, so that nobody knows them. It
	// is "lost" if Redis has lost the document with the rules, or has an older version again: then
	// publish it again. It is "missing" if there is no document, because none was published yet, or
	// Redis had lost it before this process started. The texts are stable, for metrics.
	Problem string
	// LastError describes the Problem, and LastErrorAt is when it was found last.
	LastError   string
	LastErrorAt time.Time
}

// OtherNames is the Rule under which Stats counts all names that it does not keep. If it kept all,
// callers who choose names could fill the memory, or a metrics server.
const OtherNames = tally.OtherNames

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
// The modules promlimit and otellimit show them to Prometheus and OpenTelemetry.
func (l *Limiter) Stats() Stats {
	f := l.mustFront()
	s := Stats{StoreErrors: f.failures.stats(), DryRunsNow: f.Behind.Running()}
	for _, state := range f.registry.sets.States() {
		state.Version, state.Digest = tally.Label(state.Version), tally.Label(state.Digest)
		s.RuleSets = append(s.RuleSets, RuleSetStats(state))
	}
	s.readDecisions(f.tallies.Snapshot())
	s.readDryRuns(f.tallies.DryRuns())
	s.readStore(f.Store)
	s.readCosts(f.tallies.Costs())
	s.readOutgoing(&f.outgoing)
	if f.Redis != nil {
		s.readRedis(f.Redis)
	}
	return s
}

// readDecisions reads the counts of decisions.
func (s *Stats) readDecisions(entries []tally.Entry) {
	s.Decisions = make([]DecisionCount, 0, len(entries))
	for _, e := range entries {
		s.Decisions = append(s.Decisions, DecisionCount{e.Name, Reason(e.Reason), Source(e.Source), e.Count, e.Bound, e.Near, e.Refused})
	}
}

// readDryRuns reads the counts of rules in DryRun.
func (s *Stats) readDryRuns(entries []tally.DryRunEntry) {
	s.DryRuns, s.DryRunsDropped = make(map[string]Histogram, len(entries)), make(map[string]uint64, len(entries))
	for _, e := range entries {
		s.DryRuns[e.Rule], s.DryRunsDropped[e.Rule] = Histogram(e.Delays), e.Dropped
	}
}

// readCosts reads the counts of costs that are known afterwards.
func (s *Stats) readCosts(entries []tally.CostEntry) {
	for _, e := range entries {
		s.Costs = append(s.Costs, CostStats(e))
		s.DebtExceeded += e.DebtExceeded
	}
}

// readOutgoing reads the counts of calls that go out.
func (s *Stats) readOutgoing(table *limiter.OutgoingTable) {
	table.Each(func(name string, of *limiter.OutgoingCounts) {
		s.Outgoing = append(s.Outgoing, OutgoingStats{
			Rule: name, Sent: of.Sent.Load(), GaveUp: of.GaveUp.Load(), Refused: of.Refused.Load(), Pauses: of.Pauses.Load(),
			Waited: of.Waited.Load(), WaitTime: time.Duration(of.WaitTime.Load()), Waiting: int(of.Waiting.Load()),
		})
	})
}

// readStore reads the counts of a store.
func (s *Stats) readStore(of interface{ RefundsLost() uint64 }) {
	s.RefundsLost = of.RefundsLost()
	if local, ok := of.(keyCounter); ok {
		s.Keys, s.Evictions = local.Len(), local.Evictions()
	}
}

// readRedis reads what only Redis has counts of.
func (s *Stats) readRedis(redis *redisstore.Store) {
	s.Trips, s.Calls, s.Merged = redis.Trips()
	s.Losses = redis.Losses()
	s.StoreTime = Histogram(redis.Times())
	for _, shard := range redis.Shards() {
		s.Shards = append(s.Shards, ShardStats{shard.Addr, string(shard.Breaker), shard.Opened})
	}
}
