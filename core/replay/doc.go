// Package replay answers, before a limit goes live: whom would it have hit? It decides the calls in the
// access logs of a proxy by the rules of a service, and reports what would have become of them.
//
//	report, err := replay.Run(ctx, replay.Options{
//		Guards:  []replay.Guard{{Rules: rules}},
//		Suggest: 99.9,
//	}, replay.Log{Name: "access.log", Reader: file})
//	fmt.Print(report)
//
// The calls take the same path as in a service: Guards of a [core.Limiter] that counts in this process
// decide them, one after the other, by the clock of the logs instead of the machine's. So the answer is
// the one that the service would have given, as far as the logs tell:
//
//   - A call begins when the log says that it ended, less the time that it took. Calls at the same time
//     are decided in the order of the log.
//   - A rule finds in a call what the log has of it. [RuleReport].Missing says what it lacks.
//   - A refused caller might have called less, or again. The log has what callers did without the limits.
//
// A Report needs memory for each subject and for a minute of calls, but not for each line.
package replay
