package faults_test

import (
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/internal/bounded"
	"github.com/accesslimit/accesslimit/internal/redistest"
)

const stoppedMaster = "cluster: one master stopped (SIGSTOP), under 256 callers over all shards"

// TestOneMasterStopped makes 256 callers call over all shards while one master is stopped and
// continued by turns.
func TestOneMasterStopped(t *testing.T) {
	if !long() { // what it measures depends on the machine
		return
	}
	const rounds, runs, stands, timeout = 6, 5 * time.Second, 5 * time.Second, time.Second
	cluster := clustered(t, redistest.StartCluster(t))
	limit := core.PerDay(1_000_000)
	limiter := cluster.limiter(t, timeout)
	crowd := newCrowd(t, cluster, newEndpoint(limiter, ruleFor("crowd", limit, core.FailClosed)), 256)
	failing := cluster.nodes[failingShard]
	crowd.gather()
	for range rounds {
		time.Sleep(runs)
		crowd.health.Store(isFailing)
		failing.Stop()
		time.Sleep(stands)
		crowd.health.Store(isRecovering)
		failing.Continue()
		time.Sleep(runs / 2)
		crowd.health.Store(isWell)
	}
	crowd.disperse()

	crowd.wantCounted(t, cluster.limiter(t, patience), limit)
	ratio := crowd.wantUnmoved(t, timeout)
	report(t, stoppedMaster, "p99 of the other shards %.2f times that before (%.1f ms, %.1f ms before); answered on the stopped one within %d ms (Timeout %d ms)",
		ratio, millis(crowd.during.percentile(99)), millis(crowd.before.percentile(99)), crowd.failing.percentile(100).Milliseconds(), timeout.Milliseconds())
}

// crowd is a group of callers over all shards, each with its own counter. One of the shards falls
// failing.
type crowd struct {
	t        *testing.T
	endpoint endpoint
	callers  []*crowdCaller
	stop     chan struct{}
	all      sync.WaitGroup
	disperse func() // stops the callers

	health         atomic.Int32 // of the failing shard
	before, during waits        // of calls on the other shards: while all work, and while one fails
	failing        waits        // of calls on the failing shard
}

// The states of the shard that fails. While it recovers it executes the commands that it was
// sent, which takes time.
const (
	isWell int32 = iota
	isFailing
	isRecovering
)

// failingShard is the shard that fails. callPace is the time between two calls of one caller.
const (
	failingShard = 1
	callPace     = 100 * time.Millisecond
)

// crowdCaller is one caller of a crowd.
type crowdCaller struct {
	subject        string
	shard          int
	calls, counted int // all, and those that Redis decided
}

func newCrowd(t *testing.T, s shards, d endpoint, n int) *crowd {
	c := &crowd{t: t, endpoint: d, stop: make(chan struct{})}
	c.disperse = sync.OnceFunc(func() {
		close(c.stop)
		c.all.Wait()
	})
	bounded.Cleanup(t, c.disperse) // also after a failure, so that no call fails because its limiter is closed
	for shard := range s.nodes {
		for _, subject := range s.subjects(t, shard, (n+len(s.nodes)-1)/len(s.nodes)) {
			c.callers = append(c.callers, &crowdCaller{subject: subject, shard: shard})
		}
	}
	c.callers = c.callers[:n]
	return c
}

// gather starts all callers. It returns when each has called once, so the connections are open.
func (c *crowd) gather() {
	var first sync.WaitGroup
	for i, caller := range c.callers {
		first.Add(1)
		c.all.Go(func() {
			c.call(caller, false)
			first.Done()
			time.Sleep(callPace * time.Duration(i) / time.Duration(len(c.callers)))
			for tick := time.NewTicker(callPace); ; {
				select {
				case <-c.stop:
					return
				case <-tick.C:
					c.call(caller, true)
				}
			}
		})
	}
	first.Wait()
}

// call makes one call. It counts as during the outage if that began or ended during the call.
func (c *crowd) call(caller *crowdCaller, timed bool) {
	began := c.health.Load()
	k := c.endpoint.call(caller.subject)
	ended := c.health.Load()
	caller.calls++
	if k.byRedis() {
		caller.counted++
	}
	switch {
	case caller.shard == failingShard:
		c.failing.add(k.took)
	case !k.byRedis() || k.status != http.StatusOK:
		c.t.Errorf("a call on a shard that is well ended with %d after %v: %+v", k.status, k.took, k.Decision)
	case !timed:
	case began == isFailing || ended == isFailing:
		c.during.add(k.took)
	case began == isWell && ended == isWell:
		c.before.add(k.took)
	}
}

// wantCounted fails unless each call on a healthy shard was charged once, and each call on the failing
// one at most once. All calls that Redis let pass must have been charged.
func (c *crowd) wantCounted(t *testing.T, limiter *core.Limiter, limit core.Limit) {
	t.Helper()
	for _, caller := range c.callers {
		switch charged := used(t, limiter, "crowd", caller.subject, limit); {
		case caller.shard != failingShard && charged != caller.calls:
			t.Errorf("%s, on a shard that is well: %d charged for %d calls", caller.subject, charged, caller.calls)
		case charged > caller.calls || charged < caller.counted:
			t.Errorf("%s: %d charged for %d calls, of which Redis let %d pass", caller.subject, charged, caller.calls, caller.counted)
		}
	}
}

// wantUnmoved fails when calls on the other shards took longer while the other failed,
// and returns how many times as long. A call that waits for the failing shard in any way takes most of
// the Timeout.
func (c *crowd) wantUnmoved(t *testing.T, timeout time.Duration) (ratio float64) {
	t.Helper()
	before, during := c.before.percentile(99), c.during.percentile(99)
	if before == 0 || during == 0 {
		t.Fatal("no call was timed")
	}
	if during > max(3*before, timeout/4) {
		t.Errorf("the other shards' p99 is %v while one fails, and %v before", during, before)
	}
	if most := c.failing.percentile(100); most > timeout+mayBeLate {
		t.Errorf("a call on the failing shard was back after %v, with a Timeout of %v", most, timeout)
	}
	return float64(during) / float64(before)
}
