package localfirst_test

import (
	"context"
	"testing"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
)

// local is a counter that is counted here while the store behind is ill, by so much of its limit.
func local(subject string, limit *algorithm.Limit, cost int64, share float64) algorithm.Counter {
	c := counter(subject, limit, cost)
	c.LocalShare = share
	return c
}

// left is what a counter has left in the store behind.
func (s *shared) left(c algorithm.Counter) int64 {
	var v [1]algorithm.Verdict
	s.Store.Decide(context.Background(), []algorithm.Counter{c}, false, v[:])
	return v[0].Remaining
}

// One of two servers is ill. The other is charged for the calls that pass; for those that are refused here it gets back what it was charged.
func TestLocalBesideAServerThatAnswers(t *testing.T) {
	limit := windowed(algorithm.SlidingWindow, 10, hour)
	behind := newShared(t, 1000)
	behind.illFor = "user:ill"
	s := newProcess(t, behind)
	well, ill := counter("user:well", limit, 1), local("user:ill", limit, 1, 0.3)
	for i := range 5 {
		v := make([]algorithm.Verdict, 2)
		s.Decide(context.Background(), []algorithm.Counter{well, ill}, true, v)
		if passes := i < 3; algorithm.Passes([]algorithm.Counter{well, ill}, v) != passes || v[1].From != algorithm.FromLocal || v[1].Instead == nil ||
			v[1].Err != nil || v[0].From != algorithm.FromStore || v[0].Remaining != int64(9-min(i, 2)) { // as it will be once given back
			t.Fatalf("call %d: %+v", i, v)
		}
		behind.background.Wait() // what is given back
	}
	if left := behind.left(well); left != 7 {
		t.Errorf("the healthy server has %d left, want 7 after three calls that passed", left)
	}
}

// When the server that answers refuses, nothing is charged here.
func TestLocalBesideARefusal(t *testing.T) {
	behind := newShared(t, 1000)
	behind.illFor = "user:ill"
	s := newProcess(t, behind)
	well, ill := counter("user:well", windowed(algorithm.FixedWindow, 1, hour), 1), local("user:ill", windowed(algorithm.FixedWindow, 3, hour), 1, 1)
	for i := range 4 {
		v := make([]algorithm.Verdict, 2)
		s.Decide(context.Background(), []algorithm.Counter{well, ill}, true, v)
		if refused := i > 0; refused != (v[0].RetryAfter > 0) || v[1].RetryAfter != 0 {
			t.Fatalf("call %d: %+v", i, v)
		}
	}
	if v := s.Len(); v != 1 {
		t.Errorf("%d counters here", v)
	}
	var v [1]algorithm.Verdict
	s.Decide(context.Background(), []algorithm.Counter{ill}, true, v[:])
	if v[0].Remaining != 1 {
		t.Errorf("%+v, want one left of three: one call passed before, and this", v[0])
	}
}

// A ban hears here of those of its counters that are counted here, and of no others.
func TestLocalBanWatchesItsOwn(t *testing.T) {
	behind := newShared(t, 1000)
	behind.ill.Store(true)
	s := newProcess(t, behind)
	limit := windowed(algorithm.FixedWindow, 1, hour)
	other, own := local("user:a", limit, 1, 1), local("user:b", windowed(algorithm.FixedWindow, 100, hour), 1, 1)
	ban := algorithm.Counter{Key: []byte("test:{user:b}:ban"), Limit: new(algorithm.Banned(1, hour, hour, second)), Watched: []int{1}, LocalShare: 1}
	for i := range 3 {
		v := make([]algorithm.Verdict, 3)
		s.Decide(context.Background(), []algorithm.Counter{other, own, ban}, true, v)
		if (i > 0) != (v[0].RetryAfter > 0) || v[2].RetryAfter != 0 {
			t.Fatalf("call %d: %+v", i, v)
		}
	}
}

// Who has left is answered by nobody.
func TestLocalOfACallerWhoLeft(t *testing.T) {
	behind := newShared(t, 1000)
	s := newProcess(t, behind)
	left, leave := context.WithCancel(context.Background())
	leave()
	c := local("user:a", windowed(algorithm.FixedWindow, 100, hour), 1, 1)
	c.Lease = 10
	var v [1]algorithm.Verdict
	s.Decide(left, []algorithm.Counter{c}, true, v[:])
	if v[0].Ended == nil || s.Len() != 0 {
		t.Errorf("%+v, %d counters here", v[0], s.Len())
	}
}

// What is reset, or unbanned, is so here, too.
func TestLocalIsReset(t *testing.T) {
	behind := newShared(t, 1000)
	s := newProcess(t, behind)
	c := local("user:a", windowed(algorithm.FixedWindow, 1, hour), 1, 1)
	ban := algorithm.Counter{Key: []byte("test:{user:a}:ban"), Limit: new(algorithm.Banned(1, hour, hour, second)), Watched: []int{0}, LocalShare: 1}
	passes := func() bool {
		v := make([]algorithm.Verdict, 2)
		s.Decide(context.Background(), []algorithm.Counter{c, ban}, true, v)
		return algorithm.Passes([]algorithm.Counter{c, ban}, v)
	}
	behind.ill.Store(true)
	if !passes() || passes() {
		t.Fatal("want one call to pass, and the next to be refused and banned")
	}
	behind.ill.Store(false)
	for _, key := range [][]byte{c.Key, ban.Key} {
		if err := s.Reset(context.Background(), key); err != nil {
			t.Fatal(err)
		}
	}
	behind.ill.Store(true)
	if !passes() {
		t.Error("what was reset is still counted here")
	}
}
