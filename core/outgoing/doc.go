// Package outgoing paces the calls that a service makes to others, over all of its processes:
//
//	turns, err := outgoing.New(limiter, outgoing.Rule{
//		Name: "github", Limit: core.PerHour(5000).Bucket(50), InFlight: 20, MaxWait: 10 * time.Second,
//	})
//	client := &http.Client{Transport: turns.Transport(http.DefaultTransport)}
//
// Package grpclimit has interceptors for gRPC clients. [Turns.Take] is for all other calls.
//
// A call waits for its turn at a bucket, in the order in which Redis receives the calls, and then
// takes a slot. If both are free, that is one round trip. Libraries that repeat calls belong above
// the transport, so that every attempt takes a turn.
//
// If the server refuses a call, or announces that no calls are left, all processes pause. No call is
// sent after a pause was recorded. When a pause after a refusal is over, one call is sent as a probe.
// If the server answers it, the others follow, and the bucket starts empty. Operators see a
// pause with the bans on their page and in Inspect, begin one by Ban, and end it by Unban.
//
// The path of a call, from top to bottom:
//
//	transport.RoundTrip    transport.go  sends a request, and repeats it if the rule says so (retry.go):
//	transport.send         transport.go  finds the key (key.go), and takes a turn:
//	  Turns.Take           take.go       all steps, in order:
//	    attempt.try        try.go        asks for turn and slot, and whether there is a pause (question.go),
//	                                     and gives them back if the caller leaves meanwhile
//	    attempt.probe      try.go        asks for the place of the probe after a pause
//	    attempt.reserve    reserve.go    reserves a later turn, and waits for it
//	    attempt.holdUp     wait.go       waits for the end of a pause, or for a slot in line (line.go)
//	  policiesOf           policy.go     reads what the server allows, for a slower pace (pace.go)
//	  answerOf             hints.go      reads what the server says about what is left
//	  Turn.Answered        turn.go       begins a pause, which lowers the pace too (congestion.go), or
//	                                     ends the time after one (pause.go)
//	  Turn.Release         turn.go       gives the slot back, when the body was read (body.go)
package outgoing
