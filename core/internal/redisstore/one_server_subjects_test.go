package redisstore_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
	"github.com/accesslimit/accesslimit/core/internal/redisstore"
	"github.com/accesslimit/accesslimit/internal/bounded"
	"github.com/accesslimit/accesslimit/internal/redistest"
)

// Calls on the counters of two subjects are exact on one server and behind a proxy that spreads the
// keys over several, whichever of the counters comes first in a call. A script has the keys of both
// subjects only if one server is proved to hold all keys.
func TestCallsOnSeveralSubjects(t *testing.T) {
	one, other := redistest.Start(t), redistest.Start(t)
	for _, test := range []struct {
		name  string
		route route
		off   bool // JoinKeys is not called, as for Options.OneKeyPerScript
		joins bool
	}{
		{"one server", toOne(one), false, true},
		{"one server, and one key per script", toOne(one), true, false},
		{"a proxy that sends a script to the server of its first key", toAll(one, other), false, false},
		{"a proxy that refuses keys of several slots", slotwise(toAll(one, other)), false, false},
		{"a cluster of one server", toOne(startClusterOfOne(t)), false, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			p := startKeyProxy(t, test.route)
			s := store{redisstore.New(p.client(t), patient)}
			if !test.off {
				s.JoinKeys("test:{")
			}
			bounded.Cleanup(t, s.Close)
			crossSubjects(t, s, newStore(t, p.client(t), patient))
			if got := p.scripts(); (got.joined > 0) != test.joins || got.unproved > 0 {
				t.Errorf("%+v", got)
			}
		})
	}
}

// crossSubjects has callers use up the counters of ten subjects, always two in one call, and checks
// that each admitted as many calls as it has permits.
func crossSubjects(t *testing.T, s, after store) {
	t.Helper()
	const subjects, most = 10, 20
	limit, passed := daily(t, most), make([]atomic.Int64, subjects)
	at := func(i int) algorithm.Counter { return counter(fmt.Sprint(t.Name(), i), limit) }
	var failed atomic.Pointer[algorithm.Verdict]
	together(4, func(caller int) {
		for n := range subjects * most {
			i, j := n%subjects, (n+1+caller)%subjects
			v := s.take(context.Background(), at(i), at(j))
			switch {
			case v[0].Err != nil || v[1].Err != nil:
				failed.Store(&v[0])
			case passes(v[0]) && passes(v[1]):
				passed[i].Add(1)
				passed[j].Add(1)
			}
		}
	})
	s.Close() // waits until the charges of refused calls have been given back
	if v := failed.Load(); v != nil {
		t.Errorf("a call failed: %+v", *v)
	}
	for i := range subjects {
		for passes(after.take(context.Background(), at(i))[0]) {
			passed[i].Add(1)
		}
		if n := passed[i].Load(); n != most {
			t.Errorf("subject %d: %d calls passed, want %d", i, n, most)
		}
	}
}

// A proxy that ignores hash tags is reported, because no script can decide a call with two limits
// there. One that heeds them is not.
func TestAProxyIgnoresHashTags(t *testing.T) {
	one, other := redistest.Start(t), redistest.Start(t)
	for name, test := range map[string]struct {
		route   route
		ignored int
	}{
		"ignored": {untagged(one, other), 1},
		"heeded":  {toAll(one, other), 0},
		"slots":   {slotwise(toAll(one, other)), 0},
	} {
		t.Run(name, func(t *testing.T) {
			p := startKeyProxy(t, test.route)
			s, reports := newReportingStore(t, p.client(t))
			limit := daily(t, 5)
			s.take(context.Background(), counter("one", limit), counter("other", limit))
			wantSoon(t, "both forms of keys are probed", func() bool { return p.scripts().probes == 2 })
			wantSoon(t, "it is reported", func() bool { return len(reports.all()) == 1 && reports.ignored() == test.ignored })
			s.Close()
			if n := reports.ignored(); n != test.ignored {
				t.Errorf("%d reports of ignored hash tags, want %d", n, test.ignored)
			}
		})
	}
}
