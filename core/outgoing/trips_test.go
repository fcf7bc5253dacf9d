package outgoing_test

import (
	"sync"
	"testing"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/outgoing"
	"github.com/accesslimit/accesslimit/internal/redistest"
)

func TestAFreeTurnIsOneRoundTrip(t *testing.T) {
	server := redistest.Start(t)
	limiter := newLimiter(t, core.Options{Redis: server.Client(t)})
	turns := newTurns(t, limiter, outgoing.Rule{InFlight: 10})
	take(t, turns, alice).Release()                                                                             // Redis gets to know the scripts
	eventually(t, "a free turn takes one trip and one script, and an answer without a hint none", func() bool { // but for readings of marks
		before, calls := limiter.Stats().Trips, server.Calls("evalsha")
		turn := take(t, turns, alice)
		defer turn.Release()
		if limiter.Stats().Trips-before != 1 || server.Calls("evalsha") != calls+1 {
			return false
		}
		turn.Answered(outgoing.Answer{})
		return server.Calls("evalsha") == calls+1
	})
}

// Turns with slots share round trips with other calls. Each needs a script of its own, as any slot does.
func TestTurnsWithSlotsShareTrips(t *testing.T) {
	const calls = 200
	limiter := newLimiter(t, core.Options{Redis: redistest.Start(t).Client(t)})
	turns := newTurns(t, limiter, outgoing.Rule{Limit: core.PerSecond(1_000_000).Bucket(1_000_000), InFlight: calls})
	eventually(t, "turns share trips", func() bool {
		before, held := limiter.Stats().Trips, make(chan *outgoing.Turn, calls)
		for range calls {
			go func() { held <- take(t, turns, alice) }()
		}
		for range calls {
			defer (<-held).Release()
		}
		return limiter.Stats().Trips-before < calls/2
	})
}

// Turns of one key that are asked for together share scripts, as other calls do.
func TestTurnsOfAKeyShareScripts(t *testing.T) {
	server := redistest.Start(t)
	turns := newTurns(t, newLimiter(t, core.Options{Redis: server.Client(t)}), outgoing.Rule{Limit: core.PerSecond(1_000_000).Bucket(1_000_000)})
	eventually(t, "turns share scripts", func() bool {
		const calls = 200
		before := server.Calls("evalsha")
		var callers sync.WaitGroup
		for range calls {
			callers.Go(func() { take(t, turns, alice).Release() })
		}
		callers.Wait()
		return server.Calls("evalsha")-before < calls/2
	})
}
