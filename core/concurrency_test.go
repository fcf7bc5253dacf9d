package core_test

import (
	"context"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/internal/redistest"
)

// sickRing is a ring of two servers, of which the test can stop the second, and a subject on each.
type sickRing struct {
	*core.Limiter
	well, ill string
	sick      *redistest.Server
}

// newSickRing returns a limiter whose Timeout is long enough for a server that answers.
func newSickRing(t *testing.T) sickRing {
	t.Helper()
	ring := redistest.StartRing(t, 2)
	// So that no server is taken out of the ring.
	client := ring.Client(t, func(o *redis.RingOptions) { o.HeartbeatFrequency = time.Hour })
	nodes, limiter := ring.Nodes(), newLimiter(t, core.Options{Redis: client, Timeout: 2 * time.Second})
	return sickRing{limiter, subjectOn(t, nodes[0], limiter, "well"), subjectOn(t, nodes[1], limiter, "ill"), nodes[1]}
}

// While a refusal by one shard is repeated, the response says nothing about limits on the others,
// because they are not asked.
func TestARepeatedRefusalShowsItsOwnShardOnly(t *testing.T) {
	r := newSickRing(t)
	guard := newGuard(t, r.Limiter,
		core.Rule{Name: "shared", Seconds: 3600, MaxCount: 10, Key: key(r.ill)},
		core.Rule{Name: "own", Seconds: 3600, MaxCount: 1, Key: key(r.well)})
	wantStatus(t, guard, newView("GET", "/"), 200)
	for i, source := range []core.Source{core.FromRedis, core.FromDenyCache} {
		v := newView("GET", "/")
		refusal := wantStatus(t, guard, v, 429).Refusal
		d := refusal.Decision
		if d.Rule != "own" || d.Reason != core.LimitExceeded || d.Source != source || d.RetryAfter <= 0 || len(refusal.Violated) != 1 {
			t.Errorf("%+v", refusal)
		}
		if lines := parseList(t, v.response["Ratelimit"]); len(lines) != 2-i || len(parseList(t, v.response["Ratelimit-Policy"])) != 2-i {
			t.Errorf("from %s the headers show %v", source, v.response)
		}
		if i == 0 && (len(d.All) != 2 || d.All[1].Remaining != 9) || i == 1 && d.All != nil {
			t.Errorf("from %s: %+v", source, d.All)
		}
	}
}

// A failing shard does not prevent renewing and releasing the slots of the same call on other
// shards.
func TestASickShardDoesNotAffectSlotsOnOthers(t *testing.T) {
	r := newSickRing(t)
	rule := func(name, subject string, window time.Duration) core.Rule {
		return core.Rule{Name: name, Limit: core.Limit{Max: 1, Window: window, Algorithm: core.Concurrency}, Key: key(subject)}
	}
	limit := core.Limit{Max: 1, Window: 5 * time.Second, Algorithm: core.Concurrency}
	short := newGuard(t, r.Limiter, rule("ill", r.ill, limit.Window), rule("well", r.well, limit.Window))
	long := newGuard(t, r.Limiter, rule("ill long", r.ill, time.Hour), rule("well long", r.well, time.Hour))
	wantStatus(t, long, newView("GET", "/"), 200).Run(func() int {
		wantStatus(t, short, newView("GET", "/"), 200).Run(func() int {
			r.sick.Stop()
			for end := time.Now().Add(limit.Window * 5 / 4); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
				wantLeft(t, r.Limiter, "well", r.well, limit, 0)
			}
			return 200
		})
		return 200
	})
	wantLeft(t, r.Limiter, "well long", r.well, core.Limit{Max: 1, Window: time.Hour, Algorithm: core.Concurrency}, 1)
}

// Slots that are released, or may have been taken, while Redis pauses are free soon after, not only
// at the end of their Window.
func TestAPauseKeepsNoSlots(t *testing.T) {
	server := redistest.Start(t)
	limiter := newLimiter(t, core.Options{Redis: server.Client(t), Timeout: time.Second})
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
	// Connections that exist when it pauses.
	together(20, func() { _, _ = peek(limiter, ctx, "name", "subject", limit) })
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
