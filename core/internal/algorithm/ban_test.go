package algorithm_test

import (
	"testing"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
)

// A subject that is refused in two consecutive windows is banned. Each further ban is twice as
// long, up to the longest. All bans are forgotten when there was no refusal for the longest span.
func TestBanStory(t *testing.T) {
	s := startServer(t)
	limit, full := algorithm.Banned(2, 3*second, 10*second, second), algorithm.Windowed(algorithm.FixedWindow, 1, hour)
	e := newEngines(early)
	ask := func(after int64) algorithm.Verdict {
		e.now += after
		return e.decide(true, e.now, []algorithm.Counter{
			{Key: []byte("full"), Limit: &full, Cost: 1}, {Key: []byte("ban"), Limit: &limit, Watched: []int{0}},
		})[1]
	}
	wantBan := func(what string, v algorithm.Verdict, lasts int64) {
		t.Helper()
		if v.RetryAfter != lasts {
			t.Errorf("%s: banned for %d µs, want %d", what, v.RetryAfter, lasts)
		}
	}
	ask(0) // passes
	wantBan("refused", ask(0), 0)
	wantBan("refused again in the same window", ask(second-1), 0)
	wantBan("once in a window is no strike more", ask(0), 0)
	wantBan("the refusal too many says so itself", ask(1), 3*second)
	wantBan("banned", ask(0), 3*second)
	wantBan("at its end", ask(3*second), 0) // and a first strike
	wantBan("a window without a refusal", ask(2*second), 0)
	wantBan("which begins anew", ask(0), 0)
	ask(second)
	wantBan("twice as long", ask(0), 6*second)
	ask(6 * second)
	ask(second)
	wantBan("not longer than the longest", ask(0), 10*second)
	ask(20*second - 1) // remembered to the last
	ask(second)
	wantBan("no longer than the longest still", ask(0), 10*second)
	ask(20 * second) // forgotten
	ask(second)
	wantBan("as if never banned", ask(0), 3*second)
	e.run(t, s, timed, nil)
}

// A ban by hand lasts for its span, or until the ban in force ends, if that is later. A Reset ends
// it.
func TestBanByHand(t *testing.T) {
	limit, e := algorithm.Banned(2, 3*second, 10*second, second), newEngines(early)
	look := func() int64 {
		return e.decide(false, e.now, []algorithm.Counter{{Key: []byte("ban"), Limit: &limit}})[0].RetryAfter
	}
	for _, step := range []struct{ after, span, lasts int64 }{{0, 5 * second, 5 * second}, {second, second, 4 * second}, {second, hour, hour}, {-hour, second, hour}} {
		e.now += step.after
		e.ban("ban", step.span)
		if got := look(); got != step.lasts {
			t.Errorf("%+v: banned for %d", step, got)
		}
	}
	e.reset("ban")
	if got := look(); got != 0 {
		t.Errorf("banned for %d after Reset", got)
	}
	s := startServer(t)
	e.run(t, s, timed, nil)
	e = newEngines(early)
	e.ban("ban", hour)
	e.run(t, s, timed, nil)
	if got := s.expires("ban") * 1000; got < early+hour || got > early+2*hour+millisecond {
		t.Errorf("the key expires at %d", got)
	}
}
