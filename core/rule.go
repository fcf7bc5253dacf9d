package core

import (
	"slices"
	"strings"
	"time"
)

// Rule is the annotation on a route: who may call how often. Only a limit is required: Seconds, or
// Limit.
//
//	core.Rule{Seconds: 60, MaxCount: 5, NeedLogin: true}
type Rule struct {
	// Seconds is the span of a sliding window, 1 to 31,622,400 (366 days).
	Seconds int
	// MaxCount is how many calls pass in Seconds, 1 to 10^12; 5 unless set.
	MaxCount int
	// NeedLogin lets only a known user call, counted by user: who is nobody to Options.Identify gets 401. It needs
	// Options.Identify. A call that ends in 401 is not charged to this rule: guard the login itself with a rule by IP,
	// in a middleware before this one.
	NeedLogin bool

	// Name is what the counters are called, in Redis and in headers: printable ASCII, at most 128 bytes. A named rule has
	// one counter per caller, shared by every route that a rule of this name is attached to; another limit under the same
	// name is refused.
	//
	// Unset, a rule with Paths is named after its methods and patterns, so a change of these starts afresh, and a rule without
	// after the call's METHOD and the route's pattern (a HEAD is a GET), so each route counts by itself; calls without a
	// known route share one counter.
	// Danger: two unnamed rules with the same span, one on the whole router and one on a route, share that route's
	// counter and charge it twice. A rule for a whole router wants a Name or Paths.
	Name string
	// Limit takes the place of Seconds and MaxCount, for every other kind of limit:
	// core.PerSecond(10).Bucket(20), core.PerCalendarDay(1000, "Europe/Berlin"), core.InFlight(3).
	Limit Limit
	// Also are further limits on the same subject, as 5,000 in ten seconds beside 1,000 in one: a call is charged to all of
	// them, or to none. They have the rule's name, with their span behind it in headers.
	Also []Limit

	// Key says whom to count; the user with NeedLogin, otherwise the client's IP unless set. An empty key counts by IP. An
	// error means that it could not be found out: the call gets 503.
	Key KeyFunc
	// Cost is the weight of a call: 0 is not counted, a negative one counts 1 and is logged, one that can never fit gets
	// 400, or of [CostBySize] 413. Unset, every call costs 1.
	Cost func(Request) int
	// Plans are limits that hold for some callers in place of the rule's own, by the name that Plan
	// returns. Also holds beside them. [Unlimited] lets the call pass uncounted, by Also too, unless
	// the caller is banned.
	Plans map[string]Limit
	// Plan returns the name of the caller's plan, or "" for the rule's own limit. With an error, or a
	// name that Plans does not have, the rule's own limit holds, and the problem is logged.
	//
	// A change of plan keeps what was used as long as Window and Algorithm stay the same, because
	// then the plans share one counter. With SlidingWindow, FixedWindow, CalendarWindow, SlidingLog
	// and Concurrency, all plans of a caller share one count, and each compares it with its own
	// Max. A TokenBucket counts each rate separately. A plan that is new to the bucket begins with
	// as much used as the plan that has used most. From then on it is charged with its own calls
	// and with those of slower plans, not with those of faster ones. So a slow plan holds as it
	// does alone, beside a fast one too, and the fastest bounds all calls together. A bucket counts
	// up to four rates separately until all of them are full again; beyond that the fastest ones
	// are counted together.
	// Danger: another Window or Algorithm is another counter, so a caller whose new plan has one
	// starts afresh.
	Plan func(Request) (string, error)
	// LimitFor, when set, returns a limit that is computed for each call and holds like one of Plans,
	// in place of Plans and Plan. The zero Limit is the rule's own.
	LimitFor func(Request) (Limit, error)
	// Count, when set, reports whether a call counts, by its outcome: the HTTP status that the
	// handler ended with, or the gRPC code; for a panic 500, or 13 (Internal); and 499 for a call
	// whose caller left before it was answered, where the framework notices that. The call is
	// charged first, and refunded if it does not count, so no more than MaxCount can be tried at
	// once. The refund is made before the caller can know that the call is over, unless the handler
	// itself flushes a reply of declared length. Headers show what was left with the charge. Only a
	// middleware knows the outcome: inside a handler use Limiter.Refund.
	Count func(status int) bool
	// Note, when set, is kept with each call that a SlidingLog admits, at most 256 bytes of it: see Limiter.Records. Danger: it
	// stands in Redis as it is, so it is no place for secrets.
	Note func(Request) string
	// Ban, when set, refuses callers altogether for a while who do not stop when they are refused.
	Ban Ban
	// DryRun counts and decides, but refuses nobody: what it would have refused is a Decision of its own, allowed for the
	// Reason DryRunExceeded, that OnDecision hears of. Its counters are its own, so nobody is held to what was counted when
	// it is switched off. Callers see nothing of it.
	DryRun bool

	// Skip, when set, reports whether the rule does not apply to a call: allow lists, health checks.
	// The call is then neither counted, nor refused for a ban or a missing login.
	Skip func(Request) bool
	// Paths are the patterns (doublestar: /limit/**, /api/*/items; for gRPC the full method) of the calls that the rule
	// applies to when it is attached to a whole router; all calls unless set. It applies if any reading of the call matches:
	// the route's pattern where the framework knows it, the path as the framework routes it, decoded, and cleaned of dots
	// and double slashes.
	Paths []string
	// Except are the patterns of calls that the rule does not apply to. An exception holds only if every reading of the
	// call matches, so that no spelling of a path walks around the rule. So it must match the route's pattern, too: under a
	// route /proxy/*file no /proxy/public/** can be excepted.
	Except []string
	// Methods are the HTTP methods that the rule applies to, in capitals; all unless set. GET takes HEAD with it. gRPC calls
	// have none, so it applies to all of them.
	Methods []string

	// Lease is how many calls a process may take from Redis in one trip, to be let through here without asking again, for counters of
	// SlidingWindow or FixedWindow that are asked millions of times a second; up to MaxCount, 0 (each call asks Redis) unless
	// set. Never more than MaxCount pass in a span, whoever else counts there: leased permits are used within the Window/32
	// in which they were charged, and for a second at most. A process asks for no more than it is likely to use, or who waits needs,
	// and gives back the rest when that time is over, and on Close.
	//
	// Who waits for a trip gets a call of it, however many they are: Lease bounds what is taken ahead. Peek counts leased permits as used.
	//
	// Calls that several counters decide, those of rules with Also or Ban too, ask Redis each time; so do rules in DryRun. With
	// Plans or LimitFor the limits of the two algorithms are leased, all with the same Lease. Without Redis it means nothing.
	// Danger: permits that are idle in one process are missing in another until they are given
	// back, so RetryAfter is an upper bound. Within one process, too, a call may be refused while
	// the last few are idle or on their way back. A process that dies takes its permits with it,
	// until their window is over. A Reset in another process is seen after Window/32, or a second;
	// permits that this process holds then, and gives back after it, can pass once more.
	Lease int

	// OnStoreError is what happens to calls that Redis does not answer in time or with an error, while
	// it is down, full or overloaded; FailOpen unless set.
	// Danger: FailOpen in front of a login lets passwords be tried meanwhile; FailClosed refuses
	// everybody (503); with CountLocally the processes of a service do not know of each other's counts.
	OnStoreError StorePolicy
	// Message is what a refused caller reads, in the problem's detail or the gRPC status; a sentence with the wait unless set.
	Message string
}

// defaultMaxCount is what MaxCount is unless set.
const defaultMaxCount = 5

// clone returns the rule with its own copies of all texts and lists, which a framework may have
// lent for one call.
func (r Rule) clone() Rule {
	r.Name, r.Message = strings.Clone(r.Name), strings.Clone(r.Message)
	r.Limit = r.Limit.clone()
	r.Paths, r.Except, r.Methods = cloneTexts(r.Paths), cloneTexts(r.Except), cloneTexts(r.Methods)
	r.Also = slices.Clone(r.Also)
	for i, limit := range r.Also {
		r.Also[i] = limit.clone()
	}
	r.Plans = clonePlans(r.Plans)
	return r
}

func cloneTexts(texts []string) []string {
	texts = slices.Clone(texts)
	for i, text := range texts {
		texts[i] = strings.Clone(text)
	}
	return texts
}

func clonePlans(plans map[string]Limit) map[string]Limit {
	if plans == nil {
		return nil
	}
	clones := make(map[string]Limit, len(plans))
	for name, limit := range plans {
		clones[strings.Clone(name)] = limit.clone()
	}
	return clones
}

// limit returns the rule's own limit.
func (r *Rule) limit() Limit {
	switch {
	case r.Limit != Limit{}:
		return r.Limit
	case r.MaxCount == 0:
		return Limit{Max: defaultMaxCount, Window: time.Duration(r.Seconds) * time.Second}
	default:
		return Limit{Max: r.MaxCount, Window: time.Duration(r.Seconds) * time.Second}
	}
}
