// Package core limits access to Go services. It decides whether a call may go on, by counters in
// Redis that all processes of a service share, or by counters in the process itself.
//
// A [Rule] is the annotation on a route: who may call how often. Packages such as ginlimit
// attach rules to the routes of a framework, and package adapter is for authors of others:
//
//	limiter, err := core.New(core.Options{Redis: rdb, Identify: core.BearerToken(verify)})
//	router.Use(ginlimit.New(limiter, core.Rule{Name: "api", Seconds: 1, MaxCount: 100}))
//	limit := core.Rule{Seconds: 60, MaxCount: 5, NeedLogin: true}
//	router.POST("/reply", ginlimit.New(limiter, limit), reply)
//
// Rules can also stand in files, or in one document for a fleet: see package rulefile. A [RuleSet]
// replaces rules while the service runs, wherever they come from. Package console is a page on which
// operators see what a Limiter does, and act.
//
// Without a framework, make a handle once, when the service starts: a [Counter], [Pacer], [Log] or
// [Slots].
//
//	replies, err := limiter.Counter("reply", core.PerMinute(5))
//	d, err := replies.Allow(ctx, "user:alice")
//
// Package outgoing paces the calls that a service makes to others.
//
// # Counters
//
// A counter belongs to a name, a subject and a limit. A handle has the name and the limit, and each
// call brings the subject. A rule finds all three for each call that it sees. Rules and handles
// with the same name, limit and subject share one counter.
//
// Several counters can decide one call: those of [Rule].Also, of several rules in one middleware,
// or of a Counter with several limits. Then all of them are charged, or none. One script decides
// those of one subject and, if one Redis holds all keys, those of several. Otherwise the subjects are
// decided side by side, and charges are given back if one is refused.
//
// # Algorithms
//
// A limit counts by its [Algorithm]. The default, [SlidingWindow], is right for most limits. The
// documentation of the constants says when to use another one. ALGORITHMS.md beside this file
// compares what they cost, and shows them at work.
//
// # Rules that look at callers and outcomes
//
//   - [Rule].Plans and [Rule].Plan choose a limit by the caller's plan. [Rule].LimitFor computes a
//     limit for each call.
//   - [Rule].Cost returns how many permits a call takes. [CostBySize] computes them from the
//     length of the body.
//   - [Rule].Count gives back calls that do not count, such as logins that succeeded.
//   - [Rule].Ban bans subjects that keep calling when they are refused. An operator can ban and
//     block any subject, and change its limits, at run time: see package operate.
//   - [Rule].Warn reports to [Options].OnThreshold that a caller has used a fraction of a limit, once
//     in a whole fleet.
//   - [Rule].Skip ignores calls. [Rule].Mode tries a rule before it refuses anybody ([DryRun]), or
//     marks calls for the handler instead of refusing them ([Soft]).
//   - [Limiter.Refund] gives back the charge of a direct call. [Counter.Charge] charges a cost that is
//     known afterwards, whether it fits or not, and [Counter.Open] an estimate, as a [Bill]. A rule with an
//     Estimate charges one, too, which the handler settles by [Settle].
//   - Package replay decides the calls in access logs, and shows whom a limit would have hit before it
//     goes live.
//   - Package operate is for operators: the attached rules, explanations of how they would decide a
//     call, the subjects refused most, bans, overrides, the audit. Package console is a web page that
//     shows all of this.
//
// # Redis
//
// A call usually takes one round trip. When many calls come at once, they leave in pipelines, and
// calls for the same counters share one script call. A refusal that still holds is repeated without asking
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
//   - A call returns by its context's deadline or by Options.Timeout, whichever comes first, even
//     while Redis hangs.
//   - A store that does not answer is not a refusal. [Rule].OnStoreError decides then. After a
//     quarter of a second without any answer, it decides at once. Bans and blocks that the process
//     knows still hold.
//   - A caller whose own context ends is refused for that reason, and never let through by
//     FailOpen.
//   - Every counter in Redis expires when it equals a fresh one, or soon after.
//   - One clock counts: Redis's own. If it steps back, no permits are created, and nobody waits
//     longer than one window. Without Redis it is the machine's wall clock, to within a second,
//     even after somebody has set it, or the machine was suspended.
//   - Raising or lowering a limit takes effect at once and keeps the past use, even while
//     processes have different limits. Then at most the largest of them is admitted, not one each.
//   - Input from callers never reaches another subject's counter. The subject alone decides the
//     cluster slot, so that callers who may choose many subjects can choose some with one slot.
//   - Both stores, Redis and the process, give the same answers, to the microsecond.
//
// The tests check each of these promises in the process, and on a single server, a cluster and a ring.
//
// # The path of one call
//
// From top to bottom, in the order in which the code runs:
//
//	ginlimit.New                 ginlimit/ginlimit.go        binds the rules when a route is made
//	  Limiter.guard              guard.go                    checks the rules: rule_check.go
//	    bind                     rule_bound.go               prepares names, keys and headers
//	    registry.attach          registry.go                 claims the names: internal/rulenames
//	view                         ginlimit/ginlimit.go        shows a request as an adapter.View
//	Guard.Check                  guard.go                    takes a call from the pool (call.go)
//	call.decide                  decide.go                   all steps, in order:
//	  applyRules                 decide.go                   by internal/pathmatch and Rule.Skip
//	  judge                      decide.go                   decides, and answers nobody
//	    refusedForEveryone       decide_shared.go            repeats a refusal that is the same for all
//	    addRules                 decide.go                   subject, Cost, Plan: rule_functions.go
//	      User                   call.go                     runs Identify, first if a rule needs a login
//	      obey                   marked.go                   a block, a ban, or other limits: internal/marks
//	      Call.Add               internal/engine/add.go      limits become counters, unless a mark refuses
//	    consult                  call_decider.go             asks for a verdict on each counter
//	      Call.Decide            internal/engine/decide.go   charges all counters or none
//	        localfirst.Do        internal/localfirst         lease, deny cache, Redis, fallback
//	          redisstore.Do      internal/redisstore         decide.go: a round trip, with a deadline
//	        memstore.Do          internal/memstore           the counters of this process
//	        conclude             internal/engine/decide.go   marks that refuse, failures of the store
//	  answerTo                   decide_answer.go            makes the Answer
//	    Call.Binding             internal/engine/binding.go  the limit that the caller is told of
//	    writeHeaders             decide_answer.go            what callers see:
//	      Writer.Write           internal/limitheader        writer.go; older styles: binding.go
//	    Call.Notice              internal/engine/notice.go   to the observer: Stats, Top, OnThreshold
//	      decider.Decided        call_observer.go            is that observer
//	    fillDecision             call_decider.go             the Decision, if somebody reads it
//	    answer                   decide_answer.go            OnDecision: request.go; Refusal: refusal.go
//	    completion               answer.go                   what is given back after the handler
//	  startDryRuns               dry_run.go                  decides by rules in DryRun, behind the answer
//	  letSettle                  answer.go                   lets the handler settle estimates: see below
//	Answer.Run                   answer.go                   runs the handler
//	  Completion.Run             internal/inflight           slots, and calls that do not count
//
// The package comment of internal/engine has the path within that package, and that of
// internal/redisstore the round trip. The arithmetic is in internal/algorithm. In the process it is
// NAME.go. In Redis it is NAME.lua in decide_one.lua or, for several counters, decide.lua. The
// script replies with how much it charged and the state, and NAME.go makes the verdict of
// that (reply.go, found.go).
//
// A Rule is a boundRule once it is attached (rule_bound.go), a namedRule under each name that its
// counters have (rule_named.go), and an appliedRule in a call (call_decider.go). The last two
// hold an engine.Rule and an engine.Applied, which are what the engine knows of them.
//
// A [Limiter] is a defined type over internal/limiter.Limiter, which has the parts that do not know
// what a rule is: the store, the engine, the lists. New (limiter.go) makes it, and its front,
// which has the rest. Guards and handles reach both through the front. The calls of both embed a
// decider (call_decider.go), which is an engine.Call and the parts that it uses.
//
// A Guard of a [RuleSet] takes the same path. attachment.bound (registry.go) reads the rules in
// force, once for each call, and everything after it works with those. The rules get there from top
// to bottom:
//
//	RuleSet.Replace         ruleset_replace.go          checks the rules, and that no name is missing
//	  ruleSet.bind          ruleset.go                  prepares them for each Guard
//	  Table.Replace         internal/rulenames          claims their names, or refuses them all
//	  holdTallies           ruleset_replace.go          keeps the names that Stats shows
//	  followedRules         registry.go                 each Guard gets its rules
//	  ruleSet.audit         ruleset_replace.go          writes the version into the audit
//	RuleSet.ReportError     ruleset_replace.go          if that failed: log and Stats
//
// Explain and Inspect, of package operate, take the steps of a call with another store, a Survey.
// The engine runs in Prepare, where everything fits; in ask, where the Survey notes what the engine
// wants to know; and in decide, with the answers of the limiter's store. Nothing is charged. The types
// that core and operate share for this are in internal/limiter/trial_interface.go:
//
//	Operator.Explain          core/operate/explain.go         or Inspect, for a subject: explain_inspect.go
//	  front.Trial             trial.go                        takes the guards from internal/weaklist
//	  callView                core/operate/explain_view.go    shows a described call as a View
//	  explanation.explain     core/operate/explain_decide.go  the rules, and what their functions return:
//	    trial.OfCall          trial.go                        identifies the caller; scope, Skip
//	    trial.Prepare         trial.go                        runs the functions of a rule, once
//	    explained.prepared    core/operate/explain_rule.go    the limits that the rule has for the call
//	  explanation.finish      core/operate/explain_decide.go  the store's answers, and what follows:
//	    explanation.ask       core/operate/explain_ask.go     the limits in force
//	      Survey.Ask          internal/survey/questions.go    looks at their counters, each once
//	    explanation.decide    core/operate/explain_decide.go  by each rule alone, and by each Guard
//	      trial.Decide        trial.go                        call.judge (decide.go)
//	        Survey.Do         internal/survey/survey.go       is the store meanwhile
//	    explanation.conclude  core/operate/explain_decide.go  which rule would refuse
//	  Explanation.String      core/operate/explain_text.go    the report, in words or as JSON
//
// A handle is a rule without functions. A call of it takes this path:
//
//	Counter.Allow           counter.go                  or Pacer, Log, Slots: pacer.go, log.go, slots.go
//	handle.chargeHere       counter.go                  decides all, if one limit counts without Redis
//	handleCall.ask          handle.go                   otherwise: checks the call, and reports it
//	  directCall.process    handle_decide.go            all steps, in order; or reserve, for a later turn
//	    directCall.add      handle_decide.go            Call.Add, as above
//	    Call.Decide         internal/engine/decide.go   as above; or Call.DecideUpTo, Call.Charge (bill.go)
//	    directCall.answer   handle_decide.go            Call.Binding, Call.Notice, as above
//	      fillDecision      call_decider.go             the Decision
//
// Costs that are known afterwards are settled in two ways. The charge of a rule is corrected in the
// process of the call:
//
//	Settle               settle.go                       finds the estimates by the context
//	  Estimates.Settle   internal/inflight/estimates.go  settles one rule of the call, once
//	    giveBack         internal/inflight/estimates.go  by Store.Change, what was estimated too high
//	    chargeRest       internal/inflight/estimates.go  by Store.Do, in debt, what was used beyond that
//
// The charge of a handle is corrected in any process, because the store keeps a record of the bill:
//
//	Counter.Open         bill_open.go                    makes the Bill
//	Counter.Resume       bill_token.go                   makes it of a token, in another process
//	Bill.Settle          bill.go                         counts, and returns the errors
//	  redisstore.Change  internal/redisstore             operations.go: one script, settle.lua
//	  memstore.Change    internal/memstore               bill.go: the counters of this process
//	    Bill.Change      internal/algorithm/bill.go      is settle.lua in Go
//
// Package outgoing has the path of a call that goes out. Its rule is prepared in outgoing.go.
//
// The algorithm's Go file computes Retry-After, from the state that a script replied with or the
// process has:
//
//	look               internal/algorithm/sliding_window.go  in microseconds; each algorithm has one
//	refusal.answer     internal/denycache/refusal.go         the rest of it, if a refusal is repeated
//	Call.addMark       internal/engine/decide.go             the rest of a ban, or of a block that ends
//	Call.Binding       internal/engine/binding.go            of several limits, that of the longest wait
//	fillLimit          call_decider.go                       a time.Duration; 0 in Soft and DryRun
//	newRefusal         refusal.go                            the limit's; if none refused, 1 s or none
//	Refusal.SetHeader  refusal.go                            the header, if there is a wait
//	  RetryAfter       internal/waits/waits.go               whole seconds, rounded up, at least 1
//
// If Redis does not answer in time, a call takes this path:
//
//	StorePolicy.apply       storefailure.go                       before: Required and LocalShare
//	Store.callDirectly      internal/redisstore/decide.go         the deadline of a call sent by itself
//	  boundClient.send      internal/redisstore/client.go         ends it then
//	expireCalls             internal/redisstore/lane_timeout.go   ends a call in a pipeline
//	breaker.run             internal/redisstore/breaker.go        lets the next calls fail at once
//	toFailure               internal/redisstore/failure.go        the failure, with its text
//	  classOf               internal/redisstore/failure_class.go  its class, by the client's error
//	DropUnconfirmedSlots    internal/inflight/keeper.go           gives back slots that it may hold
//	Store.StandIn           internal/localfirst/localfirst.go     what answers in place of Redis:
//	  Table.StandIn         internal/pauses/table.go              a pause that is known
//	  Counters.StandIn      internal/fallback/fallback.go         a count here, by LocalShare
//	Call.conclude           internal/engine/decide.go             lets the call pass, or refuses it:
//	  Counter.Refuses       internal/algorithm/counter.go         obeys Required
//	  decider.StoreFailed   call_observer.go                      once for each rule: log and Stats
//	Call.Outcome            internal/engine/decide.go             the reason
//	newRefusal              refusal.go                            503 for StoreFailClosed: see replies
//
// A handle without a StorePolicy returns the failure instead: directCall.noAnswer (handle_decide.go).
//
// Package operate, where operators ask and act, reaches the parts by the same conversion. It asks
// the front about rules, which only core knows.
package core
