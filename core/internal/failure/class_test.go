package failure_test

import (
	"errors"
	"maps"
	"testing"

	"github.com/accesslimit/accesslimit/core/internal/failure"
)

// Each class is counted by itself, and an error of no class as unexpected.
func TestCounts(t *testing.T) {
	var counts failure.Counts
	want := map[failure.Class]uint64{failure.Unexpected: 1}
	for _, class := range []failure.Class{
		failure.Timeout, failure.Lost, failure.Unreachable, failure.NoConnection, failure.NotReady, failure.SlotMoving,
		failure.BreakerOpen, failure.Refused, failure.Foreign, failure.Unexpected,
	} {
		counts.Add(&failure.Error{Class: class, Err: errors.New("why")})
		want[class]++
	}
	counts.Add(errors.New("of no class"))
	got := make(map[failure.Class]uint64)
	counts.Each(func(class failure.Class, count uint64) { got[class] += count })
	if !maps.Equal(got, want) {
		t.Errorf("counted %v, want %v", got, want)
	}
}
