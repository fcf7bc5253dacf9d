package outgoing_test

import (
	"errors"
	"testing"
	"time"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/outgoing"
	"github.com/accesslimit/accesslimit/internal/redistest"
)

var policies = map[string]core.StorePolicy{
	"fail open": core.FailOpen, "fail closed": core.FailClosed, "count locally": core.CountLocally(1),
}

// faults break a Redis, until they are repaired.
var faults = map[string]func(t *testing.T, server *redistest.Server) (repair func()){
	"lost": func(_ *testing.T, server *redistest.Server) func() {
		server.Kill()
		return server.Restart
	},
	"hung": func(_ *testing.T, server *redistest.Server) func() {
		server.Stop()
		return server.Continue
	},
	"full":      configured("maxmemory", "1", "0"),
	"read-only": configured("min-replicas-to-write", "1", "0"),
}

func configured(parameter, broken, repaired string) func(*testing.T, *redistest.Server) func() {
	return func(t *testing.T, server *redistest.Server) func() {
		set := func(value string) {
			if err := server.Client(t).ConfigSet(background, parameter, value).Err(); err != nil {
				t.Fatal(err)
			}
		}
		set(broken)
		return func() { set(repaired) }
	}
}

// Whatever happens to Redis, and in whatever step calls are, the policy decides. A pause is obeyed, whether it
// began before or during the fault, and recorded in the end. All slots are free again then.
func TestEachStepUnderEachFault(t *testing.T) {
	for name, fault := range faults {
		for of, policy := range policies {
			t.Run(name+"/"+of, func(t *testing.T) {
				t.Parallel()
				server := redistest.Start(t)
				rule := outgoing.Rule{Limit: core.PerMinute(60).Bucket(2), InFlight: 2, OnStoreError: policy}
				turns := newTurns(t, newLimiter(t, core.Options{Redis: server.Client(t), Timeout: 3 * time.Second}), rule)
				steps := begin(t, turns)
				repair := fault(t, server)
				steps.finish(t, turns, policy)
				repair()

				limiter := newLimiter(t, core.Options{Redis: server.Client(t)})
				rule.MaxWait = time.Second
				elsewhere, slots := newTurns(t, limiter, rule), limiter.MustSlots("api", rule.InFlight)
				eventually(t, "the pause is known elsewhere", func() bool {
					turn, err := elsewhere.Take(background, "refused")
					if err == nil {
						turn.Release()
					}
					var wait *outgoing.WaitError
					return errors.As(err, &wait) && wait.Paused
				})
				for _, key := range []string{"free", "in flight", "refused", "waiting", "probe"} {
					eventually(t, "all slots are free: "+key, func() bool {
						d, err := slots.Peek(background, key)
						return err == nil && d.Remaining == rule.InFlight
					})
				}
			})
		}
	}
}

// steps are calls that have begun before a fault: one with a turn, one that will be refused, one that waits
// for its turn.
type steps struct {
	inFlight, refused *outgoing.Turn
	waiting           chan error
}

func begin(t *testing.T, turns *outgoing.Turns) steps {
	s := steps{take(t, turns, "in flight"), take(t, turns, "refused"), make(chan error, 1)}
	call(t, turns, "probe", refused(time.Millisecond))
	call(t, turns, "paused", refused(time.Hour))
	for range 2 {
		call(t, turns, "waiting", outgoing.Answer{})
	}
	go func() {
		turn, err := turns.Take(background, "waiting")
		if err == nil {
			turn.Release()
		}
		s.waiting <- err
	}()
	eventually(t, "a call waits, or has had its turn", func() bool { return turns.Stats().Waiting == 1 || len(s.waiting) == 1 })
	return s
}

// finish ends the calls during the fault, and makes others.
func (s *steps) finish(t *testing.T, turns *outgoing.Turns, policy core.StorePolicy) {
	for _, key := range []string{"free", "probe"} {
		turn, err := turns.Take(background, key)
		if (policy == core.FailClosed) != errors.Is(err, core.ErrStore) || (err == nil) != (policy != core.FailClosed) {
			t.Errorf("%s: %v, %v", key, turn, err)
		}
		if err == nil {
			turn.Answered(outgoing.Answer{})
			turn.Release()
		}
	}
	s.refused.Answered(refused(time.Hour))
	s.refused.Release()
	for _, key := range []string{"refused", "paused"} {
		if wait := wantWait(t, turns, key, 0); !wait.Paused || wait.Wait < 10*time.Minute {
			t.Errorf("%s, during the pause: %v", key, wait)
		}
	}
	s.inFlight.Release()
	if err := <-s.waiting; err != nil && (policy != core.FailClosed || !errors.Is(err, core.ErrStore)) {
		t.Errorf("the call that waited: %v", err)
	}
}
