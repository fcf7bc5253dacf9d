// Package promise checks that the limits keep their promises. Each promise is a suite that runs on
// every engine: in this process, on one Redis server, on a cluster and on a ring.
//
// Models in plain arithmetic compute the answer of a counter (model*.go). Time passes
// only as a test says (lab.go).
package promise

import "testing"

// promise is something that holds on every engine.
type promise struct {
	name  string
	holds func(t *testing.T, e Engine)
}

// promises are all promises, each a suite of its own.
var promises = []promise{
	{"AnswersAreExact", AnswersAreExact},
	{"NeverOverTheLimit", NeverOverTheLimit},
	{"ExactUnderConcurrency", ExactUnderConcurrency},
	{"ExactAcrossProcesses", ExactAcrossProcesses},
	{"ManyKeysTogether", ManyKeysTogether},
	{"RefusedChangesNothing", RefusedChangesNothing},
	{"AllOrNone", AllOrNone},
	{"ChargedAtMostOnce", ChargedAtMostOnce},
	{"ReturnsByDeadline", ReturnsByDeadline},
	{"ContextEndIsTheCallers", ContextEndIsTheCallers},
	{"EnginesAgree", EnginesAgree},
	{"EveryKeyDies", EveryKeyDies},
	{"OneClock", OneClock},
	{"NothingFitsIsAnError", NothingFitsIsAnError},
	{"KeysAreOpaque", KeysAreOpaque},
	{"HonestRetryAfter", HonestRetryAfter},
	{"ChangingLimits", ChangingLimits},
	{"InFlight", InFlight},
	{"TakesTurns", TakesTurns},
	{"DebtIsBounded", DebtIsBounded},
	{"BillsAreExact", BillsAreExact},
	{"MarksHold", MarksHold},
}

// Run checks every promise on an engine.
//
//	for _, engine := range promise.Engines(t) {
//		t.Run(engine.Name, func(t *testing.T) { promise.Run(t, engine) })
//	}
func Run(t *testing.T, e Engine) {
	for _, p := range promises {
		t.Run(p.name, func(t *testing.T) { p.holds(t, e) })
	}
}
