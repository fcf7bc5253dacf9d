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
	// Seconds is the span of a sliding window: 1 to 31,622,400 (366 days).
	Seconds int
	// MaxCount is the number of calls that pass in any Seconds: 1 to 10^12, 5 by default.
	MaxCount int
	// NeedLogin admits only users whom Options.Identify knows, and counts by user. Everybody else
	// gets 401, and no rule of the same middleware is charged. So guard the login itself with a
	// rule by IP, in a middleware before this one.
	NeedLogin bool

	// Name is the name of the counters, in Redis and in headers: printable ASCII, at most 128
	// bytes. A named rule has one counter for each caller, shared by all routes with a rule of this
	// name. Attaching rules with one name and different limits to a Limiter is a *[RuleError], even
	// in different Guards.
	//
	// Without a Name, a rule with Paths is named after its methods and patterns, so changing them
	// starts afresh. A rule with neither is named after the call's method (GET for a HEAD) and the
	// route's pattern, so each pattern counts by itself. Calls without a known route share one
	// counter.
	//
	// Danger: two unnamed rules with the same span, one on the whole router and one on a route,
	// share that route's counter and charge it twice. Give a rule for a whole router a Name or
	// Paths. Routes of different routers with the same pattern share a counter, too, even if their
	// rules have different limits: two muxes behind http.StripPrefix or for different hosts, or two
	// gRPC servers. Give their rules a Name. The log warns of different rules that share a counter. A
	// rule with a Name that is attached twice around one handler charges each call twice, too. The log
	// warns of that if callers get RateLimit headers, but not in gRPC.
	Name string
	// Limit takes the place of Seconds and MaxCount, for every other kind of limit:
	// core.PerSecond(10).Bucket(20), core.PerCalendarDay(1000, "Europe/Berlin"), core.InFlight(3).
	Limit Limit
	// Also are further limits on the same subject, such as 5,000 in ten seconds beside 1,000 in
	// one. A call is charged to all of them, or to none. In headers they have the rule's name with
	// their span behind it.
	Also []Limit

	// Key returns the subject to count. By default that is the user with NeedLogin, and otherwise
	// the client's IP. For an empty subject, the call is counted by IP. With an error, the call
	// gets 503.
	Key KeyFunc
	// Cost returns how many permits a call takes; 1 by default. A call that costs 0 is not counted.
	// A negative cost counts as 1 and is logged. A cost that can never fit gets 400, or with
	// [CostBySize] 413, unless the caller is banned or blocked.
	Cost func(Request) int
	// Estimate takes the place of Cost for a cost that is known only when the handler has run. A call is
	// charged what Estimate returns, with 0 and negative numbers as of Cost, and the handler settles it by
	// [Settle]. The rule cannot have a Lease,
	// and its limits are by SlidingWindow, FixedWindow, CalendarWindow or TokenBucket, with slots beside
	// them. [Limiter.Refund] of its decisions is an error.
	Estimate func(Request) int
	// Bill has the terms of the estimates. Its Expires has no effect, because a call is settled before its
	// reply ends.
	Bill BillTerms
	// Plans are limits by the names that Plan returns. They take the place of the rule's own limit.
	// Also holds beside them. With [Unlimited], the call is not counted, not even by Also, and it
	// passes unless the caller is banned or has an override: see package operate.
	Plans map[string]Limit
	// Plan returns the name of the caller's plan, or "" for the rule's own limit. With an error, or
	// a name that Plans does not have, the rule's own limit holds, and the problem is logged.
	//
	// A change of plan keeps what was used as long as Window and Algorithm stay the same, because
	// then all plans of a caller share one counter, and each call compares it with its own plan. A
	// TokenBucket refills the time since the last call at the rate of the call, so calls of several
	// plans together never exceed the largest Burst and what the fastest rate brings back.
	//
	// Danger: another Window or Algorithm is another counter, so a caller whose new plan has one
	// starts afresh.
	Plan func(Request) (string, error)
	// LimitFor, if set, computes a limit for each call, in place of Plans and Plan. For the zero
	// Limit, or an error, the rule's own limit holds.
	LimitFor func(Request) (Limit, error)
	// Count, if set, reports whether a call counts, by its outcome: the HTTP status that the
	// handler ended with, or the gRPC code. A panic is 500, or 13 (Internal).
	//
	// Two outcomes are possible if a handler writes nothing after its caller has left: 200 and 499.
	// A client can pretend to leave and still get the 200. Two are possible, too, if a handler
	// panics after its reply has begun: 500 and the status that was sent. Such a call counts if it
	// counts by either, so Count may be called twice for a call, and must have no effects.
	//
	// The call is charged first, and refunded if it does not count, so no more than MaxCount can be
	// tried at once. The refund is made before the caller can know that the call is over, unless
	// the handler itself flushes a reply of declared length. Headers show the permits left with the
	// charge. A TokenBucket may get less back when more than 256 such calls overlap: see
	// Limiter.Refund. Only a middleware knows the outcome: inside a handler, use Limiter.Refund.
	//
	// Danger: a handler that gives up because its caller has left ends with a status of its own, as
	// a reverse proxy does with 502. The caller may have brought that about after the work was
	// done, so count such a status too.
	Count func(status int) bool
	// Note, if set, returns the note that is kept with each call that a SlidingLog admits: at most
	// 256 bytes of it. See Log.Records. Danger: the note stands in Redis in plain text, so it is no
	// place for secrets.
	Note func(Request) string
	// Ban, if set, refuses callers altogether for a while if they do not stop when they are
	// refused. Operators can ban, block and override the subjects of any rule with a Name: see
	// package operate.
	Ban Ban
	// Mode is what becomes of calls that do not fit: [Enforce] refuses them, [Soft] marks them for
	// the handler, and [DryRun] only counts and reports them. The default is Enforce.
	Mode Mode

	// Warn are fractions of the limit that are reported to [Options].OnThreshold when a call reaches
	// them, such as 0.8 and 1: at most four, above 0 and up to 1, in ascending order. The default is
	// none. Each limit of the rule, also those of Also, Plans, LimitFor and overrides, has thresholds
	// of its own, at the given fraction of its Max, rounded up; for a TokenBucket, of its Burst.
	//
	// All processes together report a threshold at most once for each subject and limit in a window,
	// however often use falls below it and rises again, or the limit is raised and lowered. With
	// FixedWindow and CalendarWindow, that is the window in which it was reached. With a TokenBucket,
	// it is the time in which an empty one fills, and otherwise the Window, from the call that
	// reached the threshold. At most 16 limits are reported in that time. Use that stays above
	// the threshold is not reported again. Only a charge of this rule reaches a threshold. A lower
	// limit does not, nor a charge of a Counter with the rule's name. A rule in DryRun reports the
	// use of its own counters. Calls wait for none of this.
	//
	// A threshold is not reported if the process or Redis fails just then, if the window ends before
	// Redis knows, or if too many reports wait. It may be reported again if Redis loses its memory,
	// or, without Redis, if there are more than MaxKeys counters and notices. Guard.Reset forgets
	// what was reported; in other processes, that takes up to a second.
	//
	// Warn needs Options.OnThreshold, and cannot be combined with Lease.
	Warn []float64

	// Skip, if set, reports whether the rule ignores a call: allow lists, health checks. The call
	// is then neither counted, nor refused for a ban or a missing login.
	Skip func(Request) bool
	// Paths are patterns of the calls that the rule applies to when it is attached to a whole
	// router; by default it applies to all calls. They are doublestar patterns of paths, such as
	// /limit/** and /api/*/items, or of full methods in gRPC. The rule applies if any reading of
	// the call matches: the route's pattern if the framework knows it, or the path as the framework
	// routes it, decoded, and cleaned of dots, double slashes, and what other servers take for
	// those (..;/ and ..\).
	//
	// Write * for a parameter of a route: /users/* matches /users/{id} and /users/:id, as frameworks
	// spell it. A pattern that matches no request, has a slash behind ** or other characters beside it
	// in a segment, or whose braces have too many combinations, is an error. A rule that limits nobody
	// for another reason, such as Except of /**, is logged as a warning, and so is a Method that
	// nobody registered, such as GETT.
	Paths []string
	// Except are patterns of calls that the rule does not apply to. An exception holds only if
	// every reading of the call matches, so that no spelling of a path avoids the rule. It must
	// match the route's pattern too: under a route /proxy/*file, /proxy/public/** cannot be
	// excepted.
	Except []string
	// Methods are the HTTP methods that the rule applies to, in capitals; all by default. GET
	// includes HEAD. gRPC calls have no method, so the rule applies to all of them.
	Methods []string

	// Lease is the number of permits that a process may take from Redis in one trip and spend
	// without asking again, up to MaxCount. By default it is 0: each call asks Redis. It is for
	// counters by SlidingWindow or FixedWindow that are asked millions of times a second.
	//
	// Never more than MaxCount pass in a span, whoever else counts there: a leased permit is used
	// within the Window/32 in which it was charged, and within a second. A process asks for no more
	// than it is likely to use, or its waiting callers need, and gives back the rest when that time
	// is over, and on Close. All callers who wait for a trip get a permit from it, however many
	// they are: Lease bounds the permits that are taken ahead. Peek counts leased permits as used.
	//
	// If several counters decide a call, as those of rules with Also do, it asks Redis each
	// time. With Plans or LimitFor, only limits by these two algorithms are
	// leased, all with the same Lease. Without Redis, Lease has no effect.
	//
	// Danger: permits that are idle in one process are missing in another until they are given
	// back, so RetryAfter is an upper bound. Within one process, too, a call may be refused while
	// the last few are idle or on their way back. A process that dies takes its permits with it,
	// until their window is over. A Reset in another process takes effect here after Window/32, or
	// a second. Permits that this process holds then, and gives back after it, can pass once more.
	Lease int

	// OnStoreError decides the calls that Redis does not answer in time, or answers with an error:
	// FailOpen by default. Bans and blocks that the process has read still refuse, with 429. Danger:
	// FailOpen in front of a login lets passwords be tried meanwhile. FailClosed refuses everybody
	// (503). With CountLocally, the processes of a service do not know of each other's counts.
	OnStoreError StorePolicy
	// Message is the text for a refused caller, in the problem's detail or the gRPC status. The
	// default is a sentence with the wait.
	Message string
}

// defaultMaxCount is the MaxCount of a rule that does not set it.
const defaultMaxCount = 5

// clone returns the rule with its own copies of all texts and lists, which a framework may have
// lent for one call.
func (r Rule) clone() Rule {
	r.Name, r.Message = strings.Clone(r.Name), strings.Clone(r.Message)
	r.Limit = r.Limit.clone()
	r.Paths, r.Except, r.Methods = cloneTexts(r.Paths), cloneTexts(r.Except), cloneTexts(r.Methods)
	r.Also, r.Warn = slices.Clone(r.Also), slices.Clone(r.Warn)
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

// wrong returns the error of a field.
func (r *Rule) wrong(field, code string, value any, why string) *RuleError {
	return &RuleError{Rule: r.Name, Field: field, Code: code, Value: value, Why: why}
}
