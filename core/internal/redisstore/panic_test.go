package redisstore_test

import (
	"context"
	"fmt"
	"math"
	"sync/atomic"
	"testing"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
	"github.com/accesslimit/accesslimit/core/internal/failure"
	"github.com/accesslimit/accesslimit/core/internal/panics"
	"github.com/accesslimit/accesslimit/core/internal/redisstore"
)

// hugeText and hugeArray announce more than fits into memory. go-redis panics when it reads one of
// them, if the command may have such a reply.
var (
	hugeText  = &fault{name: "a huge text", reply: fmt.Sprintf("$%d\r\n", math.MaxInt)}
	hugeArray = &fault{name: "a huge array", reply: fmt.Sprintf("*%d\r\n", math.MaxInt)}
)

// panicReports counts the panics that were reported.
type panicReports struct {
	redisstore.NoListener
	n, withoutStack atomic.Int32
}

func (r *panicReports) Panicked(err error) {
	r.n.Add(1)
	if panics.StackOf(err) == "" {
		r.withoutStack.Add(1)
	}
}

// A reply at which go-redis panics is a failure of the store, in whatever goroutine it is read. The
// panic is reported with its stack, the caller has an answer, and later calls are decided.
func TestRepliesThatPanic(t *testing.T) {
	for _, d := range deployments(t) {
		t.Run(d.name, func(t *testing.T) {
			p, reports := startProxy(t), new(panicReports)
			s := newStore(t, d.connect(t, options{dial: p.dial}), patient)
			s.Listen(reports)
			limit := daily(t, 100_000)
			one, other := counter("one "+t.Name(), limit), counter("other "+t.Name(), limit)
			s.mustTake(t, one)
			s.mustTake(t, other)
			s.mustTake(t, one, other)
			slots := algorithm.Windowed(algorithm.Concurrency, 5, 3600_000_000)
			for name, call := range map[string]func(context.Context) error{
				"one counter":  func(ctx context.Context) error { return firstError(s.take(ctx, one)) },
				"two counters": func(ctx context.Context) error { return firstError(s.take(ctx, one, other)) },
				"renewing slots": func(ctx context.Context) error {
					charges := []algorithm.Charge{{Key: counter("slots "+t.Name(), &slots).Key, Limit: &slots, Mark: "m"}}
					return s.Change(ctx, &algorithm.Change{Kind: algorithm.Renews, Charges: charges})
				},
				"giving charges back": func(ctx context.Context) error {
					charges := []algorithm.Charge{{Key: one.Key, Limit: limit, Cost: 1}, {Key: other.Key, Limit: limit, Cost: 1}}
					return s.Change(ctx, &algorithm.Change{Charges: charges})
				},
			} {
				short, leave := context.WithTimeout(context.Background(), patient/2) // which is read in a goroutine of its own
				defer leave()
				for _, ctx := range []context.Context{context.Background(), short} {
					p.fault.Store(hugeArray)
					if err := call(ctx); failure.ClassOf(err) != failure.Unexpected || !panics.Is(err) {
						t.Errorf("%s: %v, of class %s; want a panic", name, err, failure.ClassOf(err))
					}
					if err := call(ctx); err != nil {
						t.Errorf("%s, later: %v", name, err)
					}
				}
			}
			wantSoon(t, "each panic is reported", func() bool { return reports.n.Load() >= 8 })
			if n := reports.withoutStack.Load(); n > 0 {
				t.Errorf("%d reports have no stack", n)
			}
		})
	}
}

// Such a reply fails the calls of its pipeline, and the lane goes on.
func TestAPipelinePanics(t *testing.T) {
	_, client := startOne(t)
	p := startProxy(t)
	client.Options().Dialer = p.dial
	s := newStore(t, client, patient)
	limit := daily(t, 100_000)
	var failed, passed atomic.Int32
	together(crowd, func(i int) {
		for n := range 50 {
			if i == 0 && n%2 == 0 { // the next reply is an answer: failures in a row would open the breaker
				p.fault.Store([]*fault{hugeText, hugeArray}[n/2%2])
			}
			c := counter(string(rune('a'+i%20)), limit)
			switch err := firstError(s.take(context.Background(), c)); {
			case err == nil:
				passed.Add(1)
			case panics.Is(err):
				failed.Add(1)
			case failure.ClassOf(err) != failure.Unexpected:
				t.Errorf("call %d: %v", n, err)
			}
		}
	})
	p.fault.Store(nil)
	if failed.Load() == 0 || passed.Load() == 0 {
		t.Errorf("%d calls failed, and %d passed", failed.Load(), passed.Load())
	}
	s.mustTake(t, counter("last", limit))
}

// firstError returns why a call got no answer, or nil.
func firstError(verdicts []algorithm.Verdict) error {
	for _, v := range verdicts {
		if v.Err != nil {
			return v.Err
		}
	}
	return nil
}
