package core_test

import (
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
