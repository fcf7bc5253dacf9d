package linearizable

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/redis/go-redis/v9"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/internal/limitertest"
	"github.com/accesslimit/accesslimit/internal/promise"
	"github.com/accesslimit/accesslimit/internal/redistest"
)

const (
	most      = 12 // the limit
	histories = 12 // of each algorithm
	clients   = 2  // of each limiter
	calls     = 8  // of each client
)

// The histories of every algorithm are linearizable while replies are lost, connections break,
// contexts end, and Redis pauses and forgets its scripts.
func TestLinearizable(t *testing.T) {
	server := redistest.Start(t)
	slots := core.Limit{Max: most / 3, Window: time.Hour, Algorithm: core.Concurrency}
	for _, limit := range append(promise.Lasting(most), slots) {
		for _, m := range []mode{plain, withRefunds, withBills} {
			if !m.suits(limit.Algorithm) {
				continue
			}
			t.Run(fmt.Sprintf("%v, %v", limit.Algorithm, m), func(t *testing.T) {
				f := newFleet(t, server, limit, m)
				for range histories {
					check(t, f.history(t), limit)
				}
			})
		}
	}
}

// mode says what clients give back.
type mode string

const (
	plain       mode = "plain"
	withRefunds mode = "refunds"
	withBills   mode = "bills"
)

func (m mode) suits(a core.Algorithm) bool {
	switch a {
	case core.Concurrency:
		return m == plain
	case core.SlidingLog:
		return m != withBills
	}
	return true
}

// fleet is three processes that share their counters, and one whose connections never break.
type fleet struct {
	limit    core.Limit
	mode     mode
	limiters []*core.Limiter
	steady   *core.Limiter

	server     *redis.Client
	disturbing sync.Mutex
}

func newFleet(t *testing.T, server *redistest.Server, limit core.Limit, m mode) *fleet {
	f := &fleet{server: server.Client(t), limit: limit, mode: m}
	lossy := func(o *redis.Options) { o.Dialer = dialLossy }
	prefix := fmt.Sprintf("%v-%v", limit.Algorithm, m)
	for i := range 3 {
		f.limiters = append(f.limiters, limitertest.New(t, core.Options{Redis: server.Client(t, lossy), Prefix: prefix, OneKeyPerScript: i == 0}))
	}
	f.steady = limitertest.New(t, core.Options{Redis: server.Client(t), Prefix: prefix})
	return f
}

// history has the processes call two new subjects, and looks at both in the end.
func (f *fleet) history(t *testing.T) []porcupine.Operation {
	h := &history{t: t}
	subjects := []string{fmt.Sprintf("%x", rand.Uint64()), fmt.Sprintf("%x", rand.Uint64())}
	var all sync.WaitGroup
	for _, limiter := range f.limiters {
		for range clients {
			c := client{history: h, limiter: limiter, limit: f.limit, mode: f.mode}
			all.Go(func() {
				for range calls {
					if rand.N(12) == 0 {
						f.disturb(t)
					}
					c.act(subjects[rand.N(2)])
				}
			})
		}
	}
	all.Wait()
	last := client{history: h, limiter: f.steady, limit: f.limit, mode: f.mode}
	for _, subject := range subjects {
		last.ask(context.Background(), call{do: peek, subject: subject, n: 1})
	}
	return h.ops
}

// check fails the test if a history is not linearizable.
func check(t *testing.T, ops []porcupine.Operation, limit core.Limit) {
	t.Helper()
	for subject, ops := range bySubject(ops) {
		switch porcupine.CheckOperationsTimeout(model(limit), ops, 5*time.Second) {
		case porcupine.Illegal:
			t.Fatalf("no order of the calls on %s explains their answers:\n%s", subject, describe(ops))
		case porcupine.Unknown:
			t.Logf("not decided: %d calls", len(ops))
		}
	}
}

// bySubject returns the calls of each subject.
func bySubject(ops []porcupine.Operation) map[string][]porcupine.Operation {
	parts := make(map[string][]porcupine.Operation)
	for _, op := range ops {
		subject := op.Input.(call).subject
		parts[subject] = append(parts[subject], op)
	}
	return parts
}

// describe lists calls in the order in which they began.
func describe(ops []porcupine.Operation) string {
	slices.SortFunc(ops, func(a, b porcupine.Operation) int { return cmp.Compare(a.Call, b.Call) })
	var text strings.Builder
	for _, op := range ops {
		q, o := op.Input.(call), op.Output.(outcome)
		if o.unknown {
			fmt.Fprintf(&text, "%3d to ?    %s %d slot %d\n", op.Call, q.do, q.n, q.slot)
		} else {
			fmt.Fprintf(&text, "%3d to %3d  %s %d slot %d: %+v\n", op.Call, op.Return, q.do, q.n, q.slot, o)
		}
	}
	return text.String()
}
