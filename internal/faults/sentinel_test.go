package faults_test

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/accesslimit/accesslimit/internal/redistest"
)

const (
	sentinelKilled  = "Sentinel: the master killed, its replica takes over"
	sentinelPlanned = "Sentinel: a planned failover (SENTINEL FAILOVER)"
)

// TestSentinelFailsOver kills the master. Once the old master has become a replica, it kills the new
// master, and so on.
func TestSentinelFailsOver(t *testing.T) {
	if !long() { // what it measures depends on the machine
		return
	}
	took, times := failOvers(t, func(_ *redistest.Sentinel, master, replica *redistest.Server, o *outage) {
		master.Kill()
		o.wantPolicies()
		o.repaired(replica)
	})
	report(t, sentinelKilled, "right limits again %.1f s after the kill (of %d, the longest %.1f s; the Sentinels wait 1 s)", took.percentile(50).Seconds(), times, took.percentile(100).Seconds())
}

// TestSentinelFailsOverAsPlanned orders a Sentinel to let the replica take over. Redis may then
// decide every call.
func TestSentinelFailsOverAsPlanned(t *testing.T) {
	if !long() { // what it measures depends on the machine
		return
	}
	took, times := failOvers(t, func(s *redistest.Sentinel, _, replica *redistest.Server, o *outage) {
		s.FailOver(t)
		o.reaches(replica)
	})
	report(t, sentinelPlanned, "right limits again %.1f s after the command (of %d, the longest %.1f s)", took.percentile(50).Seconds(), times, took.percentile(100).Seconds())
}

// failOvers runs happens, which makes the replica take over, and returns how long it took each time
// until Redis decided all calls again.
func failOvers(t *testing.T, happens func(s *redistest.Sentinel, master, replica *redistest.Server, o *outage)) (took *waits, times int) {
	t.Helper()
	const timeout = 500 * time.Millisecond
	sentinel, took := redistest.StartSentinel(t), new(waits)
	times = 4
	var look lookout
	limiter := limiterOn(t, sentinel.Client(t, func(o *redis.FailoverOptions) { o.Dialer = look.dial }), timeout)
	master, replica := sentinel.Nodes()[0], sentinel.Nodes()[1]
	for i := range times {
		o := beginOutage(t, limiter, "subject", timeout)
		look.await(t, master.Addr())
		o.mark()
		happens(sentinel, master, replica, o)
		soon(t, "the Sentinels name the replica", func() bool { return sentinel.Master(t) == replica.Addr() })
		took.add(o.over())
		wantExact(t, limiter, "subject")
		if i+1 < times {
			master.Restart()
			follows(t, master)
			master, replica = replica, master
			time.Sleep(10 * time.Second) // Sentinels wait between failovers
		}
	}
	return took, times
}
