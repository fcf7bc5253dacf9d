package faults_test

import (
	"testing"
	"time"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/internal/redistest"
)

const ringServer = "ring: one server killed, and back"

// TestRingServerKilled kills one server of a ring, which the client takes out of the ring after a
// while, and starts it again. The keys of the others stay where they are. Its own are counted
// elsewhere meanwhile, afresh, and on the empty server again when it is back.
func TestRingServerKilled(t *testing.T) {
	if !long() { // what it measures depends on the machine
		return
	}
	const times, timeout = 5, 500 * time.Millisecond
	ring := ringed(t, redistest.StartRing(t, 3))
	limiter := ring.limiter(t, timeout)
	limit, most := core.PerDay(1_000_000), core.PerDay(40)
	crowd := newCrowd(t, ring, newEndpoint(limiter, ruleFor("crowd", limit, core.FailClosed)), 48)
	tight := newEndpoint(limiter, ruleFor("tight", most, core.FailClosed))
	subject, failing := ring.subject(t, failingShard), ring.nodes[failingShard]
	crowd.gather()
	passed := 0
	fill := func() {
		for range 2 * most.Max {
			if tight.call(subject).status == 200 {
				passed++
			}
		}
	}
	var down, back waits
	for range times {
		fill()
		o := beginOutage(t, limiter, subject, timeout)
		o.mark()
		crowd.health.Store(isFailing)
		failing.Kill()
		down.add(o.over())
		fill()
		o = beginOutage(t, limiter, subject, timeout)
		o.mark()
		failing.Restart()
		soon(t, "the server has counters again", func() bool { return failing.Client(t).DBSize(t.Context()).Val() > 0 })
		back.add(o.over())
		crowd.health.Store(isWell)
		fill()
	}
	crowd.disperse()
	crowd.wantKept(t, ring.limiter(t, patience), limit)
	if passed > most.Max*(1+2*times) {
		t.Errorf("%d passed of %d, with %d changes of the server", passed, most.Max, 2*times)
	}
	report(t, ringServer, "counted elsewhere %.1f s after the kill, at home again with no call lost for more than %.1f s; %d calls of the other shards exact; a limit of %d let %d pass (a fresh one for each of %d changes)",
		down.percentile(100).Seconds(), back.percentile(100).Seconds(), len(crowd.before.all)+len(crowd.during.all), most.Max, passed, 2*times)
}
