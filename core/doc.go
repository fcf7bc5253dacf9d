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
// [SlidingWindow], the default, never lets more than Max through in any span of Window. [FixedWindow] is the cheapest to
// explain (so many from the first call on, then a fresh window) but lets up to twice Max pass around a boundary.
// [TokenBucket] lets a burst through at once and then a steady rate: for clients that come in bursts but not for long.
//
// # What is promised
//
// Any number of processes and goroutines on one counter never get one permit more than the algorithm allows, as long as
// Redis keeps its memory. A refused call changes nothing. A call is charged at most once: nothing is sent again that may
// have charged. A call returns by its context's deadline or Options.Timeout, whichever comes first, also while Redis
// hangs. A store that does not answer is not a refusal: [Rule].OnStoreError says what happens then. A caller whose own
// context ends is refused with that, and never let through by FailOpen.
package core
