package algorithm_test

import (
	"fmt"
	"slices"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
)

// crowd makes several equal calls at once. This process decides them one after the other. Redis
// decides all of them in one script, and must give the same answers.
func (e *engines) crowd(calls int64, at int64, counters []algorithm.Counter) []algorithm.Verdict {
	op := algorithm.Op{Mode: algorithm.AllOrNone, Counters: slices.Clone(counters), Calls: calls}
	want := make([][]algorithm.Verdict, calls)
	for i := range want {
		want[i] = e.ask(algorithm.NewOp(algorithm.AllOrNone, counters...))
	}
	s := e.op(fmt.Sprint(calls, " times"), op, at, want[0])
	s.check = func(reply any) error { return checkCrowd(op, reply, calls, want) }
	e.add(s)
	return want[0]
}

// checkCrowd compares Redis's reply to a crowd with this process's answer to each call. Redis was asked for
// so many calls.
func checkCrowd(op algorithm.Op, reply any, asked int64, want [][]algorithm.Verdict) error {
	op.Calls = 1
	for behind := range want {
		_, got, err := readOp(&op, reply, int64(behind), asked)
		if err != nil || !slices.Equal(got, want[behind]) {
			return fmt.Errorf("call %d of %d: Redis says %+v, %v, this process %+v", behind, len(want), got, err, want[behind])
		}
	}
	return nil
}
