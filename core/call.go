package core

import (
	"net/netip"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
	"github.com/accesslimit/accesslimit/core/internal/limitheader"
	"github.com/accesslimit/accesslimit/core/internal/pathmatch"
	"github.com/accesslimit/accesslimit/core/internal/tally"
)

// call is the state of one call while it is decided. It implements the Request that rules read.
// Calls come from a pool.
type call struct {
	View
	limiter *Limiter
	id      uint64      // of its first charge; unique as long as this object lives in the pool
	place   tally.Place // where its decisions are counted

	applied []appliedRule // the rules that apply
	// their limits and bans; each belongs to the counter and the verdict at its place
	limits []callLimit
	// The store is asked about counters, and its answers are verdicts, at the same places.
	counters []algorithm.Counter
	verdicts []algorithm.Verdict

	decided   bool       // no function of the service owner's panicked
	passed    bool       // the call was allowed and charged
	holder    string     // names this call's slots of Concurrency, once it needs one
	deciding  *namedRule // the rule whose functions are running
	bySize    bool       // the cost was computed by CostBySize
	hasSoft   bool       // a rule with Soft applies
	hasCostly bool       // one of the limits is costly
	recalling bool       // the counters only look up a remembered refusal
	inputs    []ruleInputs
	subjects  []byte // those of all rules, one after the other
	watched   []int  // the places of a rule's counters, while they are added
	readings  pathmatch.Readings

	inspects        bool // this call looks for mistakes in how the service is put together
	untilInspection int  // how many calls of this object remain until the next inspection

	client      netip.Addr
	clientKnown bool
	user        string
	userErr     error
	userKnown   bool

	// queries ask for the overrides of rules in this call; those of later calls use them again.
	queries []*algorithm.OverrideQuery
	asked   int    // how many of the queries belong to this call
	bySizes []bool // for each of them, whether its rule's cost was computed by CostBySize

	headers limitheader.Writer // of this call and later ones
}

// appliedRule is a rule that applies to the call.
type appliedRule struct {
	rule     *boundRule
	named    *namedRule // the rule under the name that it counts this call by
	from, to int        // its subject, in call.subjects
}

// callLimit is a limit of an applied rule, or its ban.
type callLimit struct {
	*appliedRule
	ruleLimit *ruleLimit
	// The limit of ruleLimit, or the stricter one of several rules with this counter.
	limit *Limit
	// The rule's Count; if several rules have this counter, it counts what either counts.
	count  func(status int) bool
	warn   []float64 // if several rules have this counter, the Warn of all of them; otherwise nil
	isBan  bool
	banned bool // the ban holds, and is reported here
	costly bool // the cost is above the limit of a lenient rule, so the call is not charged by it
}

// use makes a describe a limit of its rule.
func (a *callLimit) use(limit *ruleLimit) {
	a.ruleLimit, a.limit, a.count = limit, &limit.limit, a.rule.Count
}

// shown reports whether the response describes this limit. It does not if the rule is lenient, or if
// this is a silent ban. Headers show soft limits if there are no others.
func (a *callLimit) shown() bool { return !a.rule.lenient && !a.silent() }

// silent reports whether this is a ban with nothing to report: it lets the call pass, or a limit of
// its rule is reported instead.
func (a *callLimit) silent() bool { return a.isBan && !a.banned }

// inspectEvery sets how often a call looks for mistakes in how the service is put together: once in
// so many calls. It is a prime, so that each of several middlewares around a handler has its turn.
const inspectEvery = 127

// open takes a call from the pool.
func (l *Limiter) open(v View) *call {
	c := l.calls.Get().(*call)
	c.View = v
	return c
}

// close empties the call and puts it back. If a function of the service owner panicked, the call is
// not decided. Then close ends the call instead, and leaves it to the garbage collector.
func (l *Limiter) close(c *call) {
	if !c.decided {
		c.abandon()
		return
	}
	c.id += 1 + uint64(len(c.counters))
	c.applied, c.limits, c.counters, c.verdicts = c.applied[:0], c.limits[:0], c.counters[:0], c.verdicts[:0]
	c.subjects, c.inputs = c.subjects[:0], c.inputs[:0]
	if c.asked > 0 {
		c.forgetOverrides()
	}
	if c.hasSoft || c.hasCostly {
		c.hasSoft, c.hasCostly = false, false
	}
	c.readings.Clear()
	c.View, c.decided, c.passed, c.clientKnown = nil, false, false, false
	if c.inspects {
		c.untilInspection = inspectEvery
	}
	c.untilInspection--
	c.inspects = c.untilInspection == 0
	if c.holder != "" {
		c.holder = ""
	}
	if c.userKnown {
		c.userKnown, c.user, c.userErr = false, "", nil
	}
	l.calls.Put(c)
}

// addCounter makes room for one more counter and its verdict. Its Key keeps the room of an earlier
// call's. The caller must set Dry, Group and Personal. Resetting them here as well took a fifth of a
// call's cycles: see BenchmarkCheck, "no headers". Override is nil already: see forgetOverrides.
func (c *call) addCounter() *algorithm.Counter {
	if len(c.counters) < cap(c.counters) {
		c.counters = c.counters[:len(c.counters)+1]
	} else {
		c.counters = append(c.counters, algorithm.Counter{})
	}
	c.verdicts = append(c.verdicts, algorithm.Verdict{})
	counter := &c.counters[len(c.counters)-1]
	// One by one, so that nothing large is copied.
	counter.Key, counter.Limit, counter.Cost, counter.Mark = counter.Key[:0], nil, 0, ""
	counter.Required, counter.Lease, counter.LocalShare, counter.Watched = false, 0, 0, nil
	return counter
}
