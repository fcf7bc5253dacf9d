package redisstore_test

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
	"github.com/accesslimit/accesslimit/internal/bounded"
	"github.com/accesslimit/accesslimit/internal/redistest"
)

// pair holds two counters on different servers, and a store of their own.
type pair struct {
	store
	on          deployment
	here, there algorithm.Counter
}

// pair returns counters with these limits, named after the test.
func (d deployment) pair(t *testing.T, here, there *algorithm.Limit) pair {
	t.Helper()
	return pair{newStore(t, d.connect(t, options{}), patient), d, d.on(t, 0, here), d.on(t, 1, there)}
}

// wantLeft closes the store, and then checks how many permits the counters have left.
func (p pair) wantLeft(t *testing.T, here, there int64) {
	t.Helper()
	p.Close()
	after := newStore(t, p.on.connect(t, options{}), patient)
	if h, th := after.left(t, p.here), after.left(t, p.there); h != here || th != there {
		t.Errorf("%d and %d left, want %d and %d", h, th, here, there)
	}
}

// unhealthy stops the second server of a pair, and returns the verdicts for a caller who waits until
// Timeout, or leaves when the first server has answered.
func (d deployment) unhealthy(t *testing.T, leaves, required bool) (pair, []algorithm.Verdict) {
	t.Helper()
	limit := daily(t, 5)
	client := d.connect(t, options{})
	p := pair{newStore(t, client, timeout), d, d.on(t, 0, limit), d.on(t, 1, limit)}
	p.there.Required = required
	warm := newStore(t, client, patient)
	warm.mustTake(t, p.here)
	if _, err := warm.Reset(context.Background(), p.here.Key); err != nil {
		t.Fatal(err)
	}
	warm.left(t, p.there)
	d.servers[1].Stop()
	ctx, leave := context.WithCancel(context.Background())
	defer leave()
	if leaves {
		asked := p.store
		go func() {
			redistest.WaitUntil(func() bool { return asked.Times().Count > 0 }, patient)
			leave()
		}()
	}
	v := p.take(ctx, p.here, p.there)
	p.Close() // before the other server can be asked again
	d.proceed(t, client)
	p.store = newStore(t, d.connect(t, options{}), patient)
	return p, v
}

func (d deployment) givenBackForTheRequired(t *testing.T) {
	p, v := d.unhealthy(t, false, true)
	if !passes(v[0]) || v[0].Remaining != 5 || v[1].Err == nil || v[1].Ended != nil {
		t.Errorf("%+v, want the second failed and nothing charged of the first", v)
	}
	if left := p.left(t, p.here); left != 5 {
		t.Errorf("%d left of the counter that was to be given back", left)
	}
}

func (d deployment) notGivenBack(t *testing.T) {
	p, v := d.unhealthy(t, false, false)
	if !passes(v[0]) || v[0].Remaining != 4 || v[1].Err == nil || v[1].Ended != nil {
		t.Errorf("%+v, want the second failed and the first charged", v)
	}
	if left := p.left(t, p.here); left != 4 {
		t.Errorf("%d left of the counter that stays charged", left)
	}
}

func (d deployment) givenBackWhenTheCallerLeaves(t *testing.T) {
	p, v := d.unhealthy(t, true, false)
	if !passes(v[0]) || v[0].Remaining != 5 || !errors.Is(v[1].Ended, context.Canceled) || v[1].Err != nil {
		t.Errorf("%+v, want the second ended and nothing charged of the first", v)
	}
	if left := p.left(t, p.here); left != 5 {
		t.Errorf("%d left of the counter that was to be given back", left)
	}
}

// A server that refused before is asked first. Then nothing is charged on the other.
func (d deployment) askedFirst(t *testing.T) {
	p := d.pair(t, daily(t, 1), daily(t, 5))
	p.mustTake(t, p.here, p.there)
	for i := range int64(4) {
		before := p.left(t, p.there)
		if v := p.take(context.Background(), p.here, p.there); v[0].RetryAfter == 0 || !passes(v[1]) || v[1].Remaining != before || v[1].Part == v[0].Part {
			t.Errorf("%+v, want the first refused and %d left of the second", v, before)
		}
		p.mustTake(t, p.there)
		if left := p.left(t, p.there); left != 3-i {
			t.Errorf("%d left after calls that passed alone, want %d", left, 3-i)
		}
	}
	if _, err := p.Reset(context.Background(), p.here.Key); err != nil { // as another process might
		t.Fatal(err)
	}
	if _, err := p.Reset(context.Background(), p.there.Key); err != nil {
		t.Fatal(err)
	}
	p.mustTake(t, p.here, p.there)
	p.wantLeft(t, 0, 4)
}

// A server that is asked first, and does not answer, leaves time to charge on the other one.
func (d deployment) askedFirstIsUnhealthy(t *testing.T) {
	client := d.connect(t, options{})
	p := pair{newStore(t, client, timeout), d, d.on(t, 1, daily(t, 1)), d.on(t, 0, daily(t, 5))}
	p.mustTake(t, p.here, p.there)
	d.servers[1].Stop()
	v := p.take(context.Background(), p.here, p.there)
	p.Close()
	d.proceed(t, client)
	p.store = newStore(t, d.connect(t, options{}), patient)
	if left := p.left(t, p.there); v[0].Err == nil || !passes(v[1]) || v[1].Remaining != 3 || left != 3 {
		t.Errorf("%+v, want the first failed and the second charged, of which %d are left", v, left)
	}
}

// The function that is set gives back the charges of a refused call over two shards.
func TestGiveBackBy(t *testing.T) {
	_, client := startOne(t)
	ring := redis.NewRing(&redis.RingOptions{Addrs: map[string]string{"one": client.Options().Addr}})
	bounded.Cleanup(t, func() { _ = ring.Close() })
	s := newStore(t, ring, patient)
	var given []algorithm.Charge
	s.GiveBackBy(func(charges []algorithm.Charge) { given = charges })
	free, full := counter("free", daily(t, 5)), counter("full", daily(t, 1))
	newStore(t, ring, patient).mustTake(t, full)
	if v := s.take(context.Background(), free, full); v[1].RetryAfter == 0 || v[0].Remaining != 5 {
		t.Fatalf("%+v", v)
	}
	if len(given) != 1 || string(given[0].Key) != string(free.Key) || s.left(t, free) != 4 {
		t.Errorf("%+v to be given back, with %d left of 5", given, s.left(t, free))
	}
}

// Close waits for charges that are being given back, or lets the callers give them back themselves,
// and never panics.
func TestCloseDuringGiveBacks(t *testing.T) {
	ring := redistest.StartRing(t, 2)
	s := newStore(t, ring.Client(t), patient)
	used, free := counter("used "+t.Name(), daily(t, 1)), counter("free "+t.Name(), daily(t, 10_000))
	s.mustTake(t, used)
	var callers sync.WaitGroup
	for range 16 {
		callers.Go(func() {
			for range 30 {
				s.take(context.Background(), used, free)
			}
		})
		callers.Go(s.Close)
	}
	callers.Wait()
	s.Close()
	if left := s.left(t, free); left != 10_000 {
		t.Errorf("%d are left of 10,000 that nobody was let use", left)
	}
}

// A charge that is given back, because another shard refused, leaves no trace in the answer: a
// counter that nobody else used is fresh, as on one server.
func TestAGivenBackChargeLeavesAFreshCounter(t *testing.T) {
	ring := redistest.StartRing(t, 2).Client(t)
	for name, limit := range limits(t, 3) {
		first, second := counter("first "+name, limit), counter("second "+name, daily(t, 1))
		newStore(t, ring, patient).mustTake(t, second)
		s := newStore(t, ring, patient) // it expects no refusal yet, so it charges both
		v := s.take(context.Background(), first, second)
		if passes(v[1]) || v[0].Remaining != 3 || v[0].Taken != 0 || v[0].ResetAfter != 0 {
			t.Errorf("%s: %+v, want the first counter fresh", name, v)
		}
	}
}
