// Package core decides whether calls may go on: access limits for Go services, counted in Redis and shared by all
// processes of a service, or in the process when there is no Redis.
//
// A service annotates its routes with rules; the packages ginlimit, echolimit, fiberlimit, nethttplimit and grpclimit attach them:
//
//	limiter, err := core.New(core.Options{Redis: rdb, Identify: core.BearerToken(verify)})
//	router.Use(ginlimit.New(limiter, core.Rule{Name: "api", Seconds: 1, MaxCount: 100}))
//	router.POST("/reply", ginlimit.New(limiter, core.Rule{Seconds: 60, MaxCount: 5, NeedLogin: true}), reply)
//
// One notion carries everything: a counter is a name, a subject and a limit. A direct call of [Limiter.Allow] names one; a
// [Rule] forms one from each call that it sees; several rules on a route are several counters, decided together.
//
// # Choosing an algorithm
//
// [SlidingWindow], the default, is the right one for most limits: never more than Max in any span of Window, whenever that
// begins, at a cost that does not grow with Max. A used permit comes back up to Window/32 late.
//
// [SlidingLog] promises the same to the microsecond and remembers who made the calls that filled the window
// ([Limiter.Records]). It pays with an entry for each of them, so it is for limits of up to 10,000: password resets, orders,
// whatever somebody may have to explain afterwards.
//
// [FixedWindow] is the easiest to explain: so many from the first call on, and afresh when the window is over. Around that
// moment up to twice Max may pass within one Window.
//
// [CalendarWindow] is the same with windows that everybody shares: each Window since 1970, or the calendar day or month of a
// zone ([PerCalendarDay], [PerCalendarMonth]): for limits that are sold by the day or month.
//
// [TokenBucket] lets a burst through at once and then a steady rate. It is for clients that come in bursts, and the only one
// that can be waited for: with [Limiter.Acquire] a worker takes its turn, in order across all processes, with
// [Limiter.TryAcquire] it gives up when its turn is too late, and [Limiter.Reserve] tells it the wait. A large cost is granted
// at once, and who comes next waits for it.
//
// [Concurrency] bounds not how often but how many at once: exports, streams, logins to a legacy system. A slot is held from the
// first to the last moment of a call ([Limiter.Hold], or a rule), and comes back by itself when its process dies.
//
// What a counter costs, with a subject of 20 letters: the bytes of its key (MEMORY USAGE) after one call and after 100, and
// the microseconds of the server's one thread for a call that is allowed and for one that is refused. The middle of two
// runs of bench/costs on two cores with redis-server 7.0, which differ by up to half; a script that does nothing takes 1.
//
//	                 bytes        allowed  refused
//	SlidingWindow    136   232    8 µs      5 µs
//	SlidingLog       216  2232    17 µs    15 µs
//	FixedWindow      136   136    8 µs      4 µs
//	CalendarWindow   136   136    11 µs     7 µs
//	TokenBucket      136   136    7 µs      4 µs
//	Concurrency      152  3176    18 µs    15 µs
//
// # What goes to Redis
//
// A call that finds few others on their way goes to Redis alone. Many that come at once leave in pipelines, and those that ask for the
// same counters in one script call, each with the answer of a call of its own. A refusal is remembered for as long as it holds, a second at most,
// and repeated without asking ([FromDenyCache]). [Rule].Lease takes calls in advance ([FromLease]). [Limiter.Stats] counts all of it.
//
// # More than one limit
//
// [Rule].Also adds limits to a rule: 1,000 in one second, 5,000 in ten. Several rules on one route are decided together as well,
// whatever their subjects and algorithms: in one script where the counters lie on one server, side by side where they do not.
// All are charged, or none.
//
// # Rules that answer to callers and outcomes
//
// [Rule].LimitFor gives a caller the limit of a plan, [Rule].Cost a call its weight. [Rule].Count takes the outcome: what does
// not count (logins that succeeded) is given back. [Rule].Ban refuses for a while who does not stop. [Rule].DryRun tries a rule
// on real calls before it refuses any. A direct call's charge is given back with [Limiter.Refund].
//
// # What is promised
//
// Any number of processes and goroutines on one counter never get one permit more than the algorithm allows, as long as
// Redis keeps its memory. A refused call changes nothing. A call is charged at most once: nothing is sent again that may
// have charged. A call returns by its context's deadline or Options.Timeout, whichever comes first, also while Redis
// hangs. A store that does not answer is not a refusal: [Rule].OnStoreError says what happens then, at once after a run of
// calls that got no answer. A caller whose own context ends is refused with that, and never let through by FailOpen.
//
// Every key in Redis dies by itself once its counter is as good as fresh. One clock counts, Redis's
// own: when it steps back, nothing is minted and nobody waits longer than one window. In the
// process the clock is the machine's wall clock, to within a second, also after it was set or the
// machine was suspended. Raising or lowering a limit takes effect at once and keeps what was used,
// also between processes that disagree for a while. Input from callers never chooses a cluster
// slot or somebody else's counter. Both engines give the same answers to the microsecond. Each of
// these promises is tested in process, on a single server, on a cluster and on a ring.
package core
