package faults_test

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/internal/redistest"
)

const oneOfTwoIll = "a call over two shards of which one fails"

// twoShardCall is a call over two shards. One rule counts on the healthy shard, the other rule on
// the failing one.
type twoShardCall struct {
	name               string
	endpoint           endpoint
	limit              core.Limit // of the rule on the healthy shard
	working            string     // its subject
	atWorking, failing core.StorePolicy
	usedUp             bool // the subject has nothing left
	atHome             int  // how many more calls may pass by the count in this process
}

// TestOneOfTwoShardsFails makes calls under two rules whose counters lie on two shards. One shard
// is stopped (in the long form), then killed. It tries every pair of policies and every algorithm on the healthy
// shard, which lets the call pass or refuses it.
func TestOneOfTwoShardsFails(t *testing.T) {
	t.Parallel()
	cluster := clustered(t, redistest.StartCluster(t))
	working, failing := cluster.subjects(t, 0, 6*3*3*2), cluster.subject(t, 1)
	timeout := sturdy
	limiter, patient := cluster.limiter(t, timeout), cluster.limiter(t, patience)
	var calls []*twoShardCall
	for _, limit := range eachAlgorithm(2) {
		for _, atWorking := range policies {
			for _, atFailing := range policies {
				for _, usedUp := range []bool{false, true} {
					calls = append(calls, newTwoShardCall(limiter, limit, working[len(calls)], failing, atWorking, atFailing, usedUp))
				}
			}
		}
	}
	for _, c := range calls {
		c.prepare(t, patient)
	}
	var refused atomic.Int64
	var most time.Duration
	breaks := []func(){cluster.nodes[1].Stop, cluster.nodes[1].Kill}
	for _, breaks := range breaks[shortOr(1, 0):] { // the stopped one costs each call its Timeout
		breaks()
		var longest waits
		var all sync.WaitGroup
		for _, c := range calls {
			all.Go(func() {
				for range 2 {
					longest.add(c.decide(t, patient, timeout, &refused))
				}
			})
		}
		all.Wait()
		most = max(most, longest.percentile(100))
	}
	report(t, oneOfTwoIll, "all of %d calls answered by their rules' policies, within %d ms (Timeout %d ms); the %d that were refused had their charges back",
		4*len(calls), most.Milliseconds(), timeout.Milliseconds(), refused.Load())
}

// locally lets shareAtHome calls of a limit of atHomeOf pass in this process, and one call of a
// limit that is much smaller.
var locally = core.CountLocally(shareAtHome / float64(atHomeOf))

const (
	shareAtHome = 4
	atHomeOf    = 1 << 20
)

var policies = [...]core.StorePolicy{core.FailOpen, core.FailClosed, locally}

func newTwoShardCall(limiter *core.Limiter, limit core.Limit, working, failing string, atWorking, atFailing core.StorePolicy, usedUp bool) *twoShardCall {
	name := fmt.Sprintf("%v, %v beside a failing %v, used up %v", limit.Algorithm, atWorking, atFailing, usedUp)
	here, there := ruleFor("working "+name, limit, atWorking), ruleFor("failing "+name, core.PerDay(1000), atFailing)
	here.Key, there.Key = alwaysOf(working), alwaysOf(failing)
	return &twoShardCall{name, newEndpoint(limiter, here, there), limit, working, atWorking, atFailing, usedUp, 1}
}

// passes reports whether the next call passes.
func (c *twoShardCall) passes() bool {
	return !c.usedUp && (c.failing == core.FailOpen || c.failing == locally && c.atHome > 0)
}

// prepare uses up the limit on the healthy shard if usedUp is set.
func (c *twoShardCall) prepare(t *testing.T, limiter *core.Limiter) {
	t.Helper()
	if !c.usedUp {
		return
	}
	take := taker(t, limiter, "working "+c.name, c.limit)
	for range c.limit.Max {
		if allowed, err := take(c.working); err != nil || !allowed {
			t.Fatalf("%s: %v, %v", c.name, allowed, err)
		}
	}
}

// decide makes the call while the other shard is failing, and returns how long that took.
func (c *twoShardCall) decide(t *testing.T, limiter *core.Limiter, timeout time.Duration, refused *atomic.Int64) time.Duration {
	before := used(t, limiter, "working "+c.name, c.working, c.limit)
	k := c.endpoint.call("")
	if k.took > timeout+mayBeLate {
		t.Errorf("%s: back after %v, with a Timeout of %v", c.name, k.took, timeout)
	}
	c.wantAnswers(t, k)
	after, passes := before, c.passes()
	switch {
	case !passes:
		refused.Add(1)
	case c.failing == locally:
		c.atHome--
	}
	// A slot is free again when the call has ended.
	if passes && c.limit.Algorithm != core.Concurrency {
		after++
	}
	soon(t, c.name+": the working shard has charged what it is to keep", func() bool {
		return used(t, limiter, "working "+c.name, c.working, c.limit) == after
	})
	if passes && after == c.limit.Max { // so that it passes the next time, too
		if _, err := limiter.MustCounter("working "+c.name, c.limit).Reset(context.Background(), c.working); err != nil {
			t.Error(err)
		}
	}
	return k.took
}

// wantAnswers checks the decision of each rule.
func (c *twoShardCall) wantAnswers(t *testing.T, k result) {
	t.Helper()
	status, here, there, by := http.StatusOK, core.Allowed, core.StoreFailOpen, core.FromNobody
	switch {
	case c.failing == core.FailClosed:
		status, there = http.StatusServiceUnavailable, core.StoreFailClosed
	case c.failing == locally && c.atHome == 0:
		status, there, by = http.StatusTooManyRequests, core.LimitExceeded, core.FromLocal
	case c.failing == locally:
		there, by = core.Allowed, core.FromLocal
	}
	if c.usedUp {
		status, here = http.StatusTooManyRequests, core.LimitExceeded
	}
	if k.status != status || len(k.All) != 2 {
		t.Errorf("%s: %d %+v, want %d and what each rule says", c.name, k.status, k.Decision, status)
		return
	}
	for _, d := range k.All {
		switch d.Rule {
		case "working " + c.name:
			if d.Reason != here || d.Source != core.FromRedis && d.Source != core.FromDenyCache {
				t.Errorf("%s: the rule on the working shard says %+v, want %s", c.name, d, here)
			}
		default:
			if d.Reason != there || d.Source != by {
				t.Errorf("%s: the rule on the failing shard says %+v, want %s", c.name, d, there)
			}
		}
	}
}
