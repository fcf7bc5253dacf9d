// Package core limits access to Go services. It decides whether a call may go on, by counters in
// Redis that all processes of a service share, or by counters in the process itself.
//
// A [Rule] is the annotation on a route: who may call how often. The packages ginlimit, echolimit,
// fiberlimit, nethttplimit and grpclimit attach rules:
//
//	limiter, err := core.New(core.Options{Redis: rdb, Identify: core.BearerToken(verify)})
//	router.Use(ginlimit.New(limiter, core.Rule{Name: "api", Seconds: 1, MaxCount: 100}))
//	limit := core.Rule{Seconds: 60, MaxCount: 5, NeedLogin: true}
//	router.POST("/reply", ginlimit.New(limiter, limit), reply)
//
// Without a framework, make a handle once, when the service starts: a [Counter], [Pacer], [Log] or
// [Slots].
//
//	replies, err := limiter.Counter("reply", core.PerMinute(5))
//	d, err := replies.Allow(ctx, "user:alice")
//
// # Counters
//
// A counter belongs to a name, a subject and a limit. A handle has the name and the limit, and each
// call brings the subject. A rule finds all three for each call that it sees. Rules and handles
// with the same name, limit and subject share one counter.
//
// Several counters can decide one call: those of [Rule].Also, of several rules in one middleware,
// or of a Counter with several limits. Then all of them are charged, or none. If they are on one
// Redis server, one script decides. If not, the servers are asked side by side, and charges are
// given back if one refuses.
//
// # Choosing an algorithm
//
// [SlidingWindow] is the default and right for most limits. It never admits more than Max in any
// span of Window, and its memory does not grow with Max. A used permit comes back up to Window/32
// late.
//
// [SlidingLog] promises the same to the microsecond, and keeps the calls that filled the window
// ([Log.Records]). It stores an entry for each of them, so Max is at most 10,000. Use it for
// password resets, orders, and other calls that somebody may have to explain later.
//
// [FixedWindow] is the easiest to explain. The window begins with the first call, and when it is
// over the count starts afresh. Around that moment, up to twice Max may pass within one Window.
//
// [CalendarWindow] is the same with windows that all subjects share: each Window since 1970, or the
// calendar days or months of a zone ([PerCalendarDay], [PerCalendarMonth]). Use it for quotas that
// are sold by the day or month.
//
// [TokenBucket] admits a burst at once and then a steady rate. Use it for clients that call in
// bursts. It is also the only algorithm that callers can wait for, with a [Pacer]: turns come in
// order across all processes. A large cost is granted at once, and the next caller waits for it.
//
// [Concurrency] limits how many calls are in flight, not how often they come. Use it for exports,
// streams, and logins to a legacy system. A slot is held during the whole call, by a rule or by
// [Slots.Hold]. If the process dies, the slot comes back by itself. [Decision].RetryAfter is an
// upper bound, because nobody knows when a call will end.
//
// The table shows the cost of a counter with a subject of 20 letters: the bytes of its key (MEMORY
// USAGE) after one call and after 100, and the microseconds of the server's one thread for an
// allowed and for a refused call. A script that does nothing takes 1 µs. The figures are the middle
// of two runs of "cd bench && go run ./costs" on two cores with redis-server 7.0, which differ by
// up to half.
//
//	                 bytes        allowed  refused
//	SlidingWindow    136   232    8 µs      5 µs
//	SlidingLog       216  2232    17 µs    15 µs
//	FixedWindow      136   136    8 µs      4 µs
//	CalendarWindow   136   136    11 µs     7 µs
//	TokenBucket      136   136    7 µs      4 µs
//	Concurrency      152  3176    18 µs    15 µs
//
// # Rules that look at callers and outcomes
//
//   - [Rule].Plans and [Rule].Plan choose a limit by the caller's plan, [Rule].LimitFor computes
//     one.
//   - [Rule].Cost returns how many permits a call takes. [CostBySize] weighs its body.
//   - [Rule].Count gives back calls that do not count, such as logins that succeeded.
//   - [Rule].Ban bans subjects that keep calling when they are refused. A ban must be arranged
//     beforehand: [Limiter.Ban] needs a rule with Ban set, at least as Ban{ByHand: true}.
//   - [Rule].Skip ignores calls. [Rule].DryRun tries a rule before it refuses anybody.
//   - [Limiter.Refund] gives back the charge of a direct call.
//
// # Redis
//
// A call takes one round trip. When many calls come at once, they leave in pipelines, and calls for
// the same counters share one script call. A refusal that still holds is repeated without asking
// Redis, for at most a second ([FromDenyCache]). A process may take permits in advance
// ([Rule].Lease, [FromLease]). [Limiter.Stats] counts all of it.
//
// Without [Options].Redis, there is no Redis: counts stay in this process, and a line in the log
// says so.
//
// # Promises
//
//   - Any number of processes and goroutines on one counter never get one permit more than the
//     algorithm allows, as long as Redis keeps its memory.
//   - A refused call changes nothing.
//   - A call is charged at most once. A command that may have been charged is not sent again.
//   - A call returns by its context's deadline or by Options.Timeout, whichever comes first, also
//     while Redis hangs.
//   - A store that does not answer is not a refusal. [Rule].OnStoreError decides then. After a
//     quarter of a second without any answer, it decides at once.
//   - A caller whose own context ends is refused for that reason, and never let through by
//     FailOpen.
//   - Every key in Redis expires when its counter equals a fresh one, or soon after.
//   - One clock counts: Redis's own. If it steps back, no permits are created, and nobody waits
//     longer than one window. In the process it is the machine's wall clock, to within a second,
//     also after it was set or the machine was suspended.
//   - Raising or lowering a limit takes effect at once and keeps the past use, also while processes
//     disagree about it.
//   - Input from callers never chooses a cluster slot or another subject's counter.
//   - Both engines give the same answers, to the microsecond.
//
// The tests hold each of these promises on both engines, on a single server, a cluster and a ring.
//
// # The path of one call
//
// From top to bottom, in the order in which the code runs:
//
//	ginlimit.New            ginlimit/ginlimit.go        binds the rules when a route is made
//	  Limiter.Guard         guard.go                    checks rules (rule_check.go), claims names
//	view                    ginlimit/ginlimit.go        shows a request as a View
//	Guard.Check             guard.go                    takes a call from the pool (call.go)
//	call.decide             decide.go                   all steps, in order:
//	  apply                 decide.go                   the rules that apply: rule_scope.go, Rule.Skip
//	  refusedForEveryone    decide_shared.go            repeats a refusal that is the same for all
//	  User                  call_request.go             runs Identify
//	  addCounters           decide_counters.go          subject, plan and cost become counters
//	    mergeLast           decide_merge.go             two rules with one counter charge it once
//	  askStore              decide.go                   asks for a verdict on each counter
//	    localfirst.Decide   internal/localfirst         deny cache, lease, Redis, fallback
//	      redisstore.Decide internal/redisstore         a round trip: pipeline, deadline, breaker
//	      memstore.Decide   internal/memstore           without Redis: the counters of this process
//	        *.lua, *.go     internal/algorithm          the arithmetic, once for each engine
//	  answerVerdicts        decide_verdicts.go          makes the Decision; Stats, OnDecision
//	    answer              decide_answer.go            the Answer: headers.go, refusal.go
//	Answer.Run              guard.go                    runs the handler
//	  completion.run        outcome.go                  gives back slots, and calls that do not count
//
// A handle takes a shorter path: Counter.Allow (counter.go), handleCall.ask (handle.go), and then the
// store as above.
//
// # For authors of adapters
//
// Only adapters need these names. They are on two pages, view.go and guard.go, and in refusal.go
// and response.go:
//
//   - [View] is the view of a call that an adapter gives to the core. [LooseView], [RoutedView] and
//     [NestedView] have one more method, for some frameworks. [HeaderWriter] is the headers of the
//     reply. [PeerOf] and [PeerAddr] read addresses.
//   - [Guard.Check] decides for a middleware, and [Check.Allow] inside a handler. Both return an
//     [Answer].
//   - [Answer] holds the [Refusal] to send ([Refusal.SetHeader], [Refusal.SetPushback]), or runs
//     the handler ([Answer.Run]). [Answer.Watch] and [Response] follow replies of frameworks on
//     net/http.
//
// The example of package limittest is an adapter for a made-up framework. limittest.Run holds an
// adapter to everything that it must do.
package core
