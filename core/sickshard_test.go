package core_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/internal/redistest"
)

// sickRing is a ring of two servers of which the second stops when the test says, and a subject on
// each.
type sickRing struct {
	*core.Limiter
	well, ill string
	sick      *redistest.Server
}

func newSickRing(t *testing.T) sickRing {
	t.Helper()
	ring := redistest.StartRing(t, 2)
	client := ring.Client(t, func(o *redis.RingOptions) { o.HeartbeatFrequency = time.Hour }) // takes no server out of the ring
	on := func(node *redistest.Server) string {
		for i := range 1000 {
			subject := fmt.Sprint("subject", i)
			shard, err := client.GetShardClientForKey("accesslimit:{" + subject + "}:name")
			if err == nil && shard.Options().Addr == node.Addr() {
				return subject
			}
		}
		t.Fatal("no subject lies there")
		return ""
	}
	nodes := ring.Nodes()
	return sickRing{newLimiter(t, core.Options{Redis: client, Timeout: 200 * time.Millisecond}), on(nodes[0]), on(nodes[1]), nodes[1]}
}

func counting(subject string) core.KeyFunc {
	return func(core.Request) (string, error) { return subject, nil }
}

// A rule that is only tried switches no live one off, though its own shard is down and it would
// fail closed.
func TestATriedRuleOnASickShardLeavesTheLiveOne(t *testing.T) {
	r := newSickRing(t)
	guard := newGuard(t, r.Limiter,
		core.Rule{Name: "live", Seconds: 3600, MaxCount: 3, Key: counting(r.well), OnStoreError: core.FailClosed},
		core.Rule{Name: "tried", Seconds: 3600, MaxCount: 3, Key: counting(r.ill), OnStoreError: core.FailClosed, DryRun: true},
	)
	r.sick.Stop()
	wantServed(t, guard, newView("GET", "/"), ok, 200, 200, 200, 429)
}

// A limit on a sick shard refuses if the rule fails closed, and so does a ban alone.
func TestABanThatCannotBeAskedFailsClosed(t *testing.T) {
	r := newSickRing(t)
	unlimited := func(core.Request) (core.Limit, error) { return core.Unlimited, nil }
	banned := core.Rule{Name: "plan", Seconds: 3600, Key: counting(r.ill), LimitFor: unlimited, OnStoreError: core.FailClosed, Ban: core.Ban{ByHand: true}}
	live := core.Rule{Name: "live", Seconds: 3600, MaxCount: 3, Key: counting(r.well)}
	guard := newGuard(t, r.Limiter, live, banned)
	wantServed(t, guard, newView("GET", "/"), ok, 200)
	r.sick.Stop()
	d := wantStatus(t, guard, newView("GET", "/"), 503).Refusal.Decision
	if d.Reason != core.StoreFailClosed || d.Rule != "plan" {
		t.Errorf("the decision is %+v", d)
	}
}

// While a refusal by one shard is repeated, nothing is said of limits on the others: they are not
// asked.
func TestARepeatedRefusalTellsOfItsOwnShard(t *testing.T) {
	r := newSickRing(t)
	guard := newGuard(t, r.Limiter,
		core.Rule{Name: "shared", Seconds: 3600, MaxCount: 10, Key: counting(r.ill)},
		core.Rule{Name: "own", Seconds: 3600, MaxCount: 1, Key: counting(r.well)})
	wantStatus(t, guard, newView("GET", "/"), 200)
	for i, source := range []core.Source{core.FromRedis, core.FromDenyCache} {
		v := newView("GET", "/")
		refusal := wantStatus(t, guard, v, 429).Refusal
		d := refusal.Decision
		if d.Rule != "own" || d.Reason != core.LimitExceeded || d.Source != source || d.RetryAfter <= 0 || len(refusal.Violated) != 1 {
			t.Errorf("%+v", refusal)
		}
		if told := parseList(t, v.response["Ratelimit"]); len(told) != 2-i || len(parseList(t, v.response["Ratelimit-Policy"])) != 2-i {
			t.Errorf("from %s the caller is told %v", source, v.response)
		}
		if i == 0 && (len(d.All) != 2 || d.All[1].Remaining != 9) || i == 1 && d.All != nil {
			t.Errorf("from %s: %+v", source, d.All)
		}
	}
}

// One sick shard keeps no other from renewing and releasing the slots of the same call.
func TestASickShardKeepsNoSlotsOfOthers(t *testing.T) {
	r := newSickRing(t)
	rule := func(name, subject string, window time.Duration) core.Rule {
		return core.Rule{Name: name, Limit: core.Limit{Max: 1, Window: window, Algorithm: core.Concurrency}, Key: counting(subject)}
	}
	short := newGuard(t, r.Limiter, rule("ill", r.ill, time.Second), rule("well", r.well, time.Second))
	long := newGuard(t, r.Limiter, rule("ill long", r.ill, time.Hour), rule("well long", r.well, time.Hour))
	limit := core.Limit{Max: 1, Window: time.Second, Algorithm: core.Concurrency}
	wantStatus(t, long, newView("GET", "/"), 200).Run(func() int {
		wantStatus(t, short, newView("GET", "/"), 200).Run(func() int {
			r.sick.Stop()
			for end := time.Now().Add(2 * limit.Window); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
				wantLeft(t, r.Limiter, "well", r.well, limit, 0)
			}
			return 200
		})
		return 200
	})
	wantLeft(t, r.Limiter, "well long", r.well, core.Limit{Max: 1, Window: time.Hour, Algorithm: core.Concurrency}, 1)
}

// Slots that are released, or may have been taken, while Redis pauses are free soon after, not only
// when their Window is over.
func TestAPauseKeepsNoSlots(t *testing.T) {
	server := redistest.Start(t)
	limiter := newLimiter(t, core.Options{Redis: server.Client(t), Timeout: 100 * time.Millisecond})
	limit := core.Limit{Max: 10, Window: time.Hour, Algorithm: core.Concurrency}
	ctx := context.Background()
	together := func(n int, do func()) {
		done := make(chan struct{})
		for range n {
			go func() { do(); done <- struct{}{} }()
		}
		for range n {
			<-done
		}
	}
	together(20, func() { _, _ = peek(limiter, ctx, "name", "subject", limit) }) // connections that are there when it pauses
	var releases []func()
	for range 4 {
		release, d, err := holdBy(limiter, ctx, "name", "subject", limit)
		if err != nil || !d.Allowed {
			t.Fatalf("%+v, %v", d, err)
		}
		releases = append(releases, release)
	}
	server.Stop()
	for _, release := range releases {
		release()
	}
	together(20, func() {
		impatient, cancel := context.WithTimeout(ctx, 5*time.Millisecond)
		defer cancel()
		release, _, _ := holdBy(limiter, impatient, "name", "subject", limit)
		release()
	})
	server.Continue()
	for end := time.Now().Add(patient); ; time.Sleep(10 * time.Millisecond) {
		d, err := peek(limiter, ctx, "name", "subject", limit)
		if err == nil && d.Remaining == 10 {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("nobody holds a slot, and there are %+v, %v", d, err)
		}
	}
}
