package faults_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/internal/redistest"
)

const movedSlot = "cluster: a slot moved while in use (ASK, MOVED, TRYAGAIN)"

// TestSlotMovesInUse moves a slot to another master and back, key by key, under callers of every
// algorithm, and of rules with several counters in that slot.
func TestSlotMovesInUse(t *testing.T) {
	t.Parallel()
	times := 4
	if long() {
		times = 60
	}
	cluster := clustered(t, redistest.StartCluster(t))
	limiter := cluster.limiter(t, patience)
	subject := cluster.subject(t, 0)
	var users []*slotUser
	for _, limit := range eachAlgorithm(10_000) {
		users = append(users, newSlotUser(fmt.Sprint("one ", limit.Algorithm), ruleFor("one", limit, core.FailClosed)))
	}
	for _, limit := range eachAlgorithm(30) {
		users = append(users, newSlotUser(fmt.Sprint("full ", limit.Algorithm), ruleFor("full", limit, core.FailClosed)))
	}
	several := ruleFor("several", core.PerDay(10_000), core.FailClosed)
	several.Also, several.Ban = eachAlgorithm(10_000)[1:5], core.Ban{After: 5, For: time.Hour}
	users = append(users,
		newSlotUser("several limits and a ban", several),
		newSlotUser("several rules", ruleFor("rule", eachAlgorithm(10_000)[0], core.FailClosed), ruleFor("other rule", eachAlgorithm(40)[1], core.FailClosed)))

	var all sync.WaitGroup
	stop := make(chan struct{})
	for _, u := range users {
		d := newEndpoint(limiter, u.rules...)
		for range 4 {
			all.Go(func() { u.use(t, d, subject, stop) })
		}
	}
	time.Sleep(100 * time.Millisecond)
	m := newMover(t, cluster, subject)
	for range times / 2 {
		m.move(0, 1)
		m.move(1, 0)
	}
	close(stop)
	all.Wait()
	calls := int64(0)
	for _, u := range users {
		u.wantExact(t, limiter, subject)
		calls += u.calls.Load()
	}
	report(t, movedSlot, "%d calls during %d moves of up to %d keys: no error, every count exact; the longest call %v, the longest move %v",
		calls, times, m.keys, longestOf(users).Round(time.Millisecond), m.longest.Round(time.Millisecond))
}

// slotUser is a group of callers under rules with counters of one subject.
type slotUser struct {
	name                   string
	rules                  []core.Rule
	calls, passed, longest atomic.Int64
}

// newSlotUser returns a slotUser, and gives its rules names of their own.
func newSlotUser(name string, rules ...core.Rule) *slotUser {
	for i := range rules {
		rules[i].Name += " " + name
	}
	return &slotUser{name: name, rules: rules}
}

// use makes calls until stop is closed.
func (u *slotUser) use(t *testing.T, d endpoint, subject string, stop chan struct{}) {
	for {
		select {
		case <-stop:
			return
		case <-time.After(time.Millisecond):
		}
		u.calls.Add(1)
		k := d.call(subject)
		if !k.byRedis() || k.status != http.StatusOK && k.status != http.StatusTooManyRequests {
			t.Errorf("%s: a call ended with %d after %v: %+v", u.name, k.status, k.took, k.Decision)
		}
		if k.status == http.StatusOK {
			u.passed.Add(1)
		}
		for longest := u.longest.Load(); int64(k.took) > longest && !u.longest.CompareAndSwap(longest, int64(k.took)); longest = u.longest.Load() {
		}
	}
}

// wantExact fails unless every call that passed was charged to every counter, and no limit let more
// than Max calls pass.
func (u *slotUser) wantExact(t *testing.T, limiter *core.Limiter, subject string) {
	t.Helper()
	passed := int(u.passed.Load())
	for _, rule := range u.rules {
		for _, limit := range append([]core.Limit{rule.Limit}, rule.Also...) {
			charged, want := used(t, limiter, rule.Name, subject, limit), passed
			if limit.Algorithm == core.Concurrency { // every slot is free again
				want = 0
			} else if passed > limit.Max {
				t.Errorf("%s, %v: %d passed", u.name, limit, passed)
			}
			if charged != want {
				t.Errorf("%s, %v: %d charged, want %d of %d calls", u.name, limit, charged, want, u.calls.Load())
			}
		}
	}
	if u.calls.Load() == 0 || passed == 0 {
		t.Errorf("%s: %d of %d calls passed", u.name, passed, u.calls.Load())
	}
}

func longestOf(users []*slotUser) (longest time.Duration) {
	for _, u := range users {
		longest = max(longest, time.Duration(u.longest.Load()))
	}
	return longest
}

// mover moves a slot between the masters of a cluster.
type mover struct {
	t       *testing.T
	masters []*redis.Client
	ids     []string
	slot    int
	keys    int // the most that one move took along
	longest time.Duration
}

func newMover(t *testing.T, s shards, subject string) *mover {
	t.Helper()
	m := &mover{t: t}
	for _, node := range s.nodes {
		client := node.Client(t)
		m.masters = append(m.masters, client)
		m.ids = append(m.ids, client.ClusterMyID(context.Background()).Val())
	}
	m.slot = int(m.masters[0].ClusterKeySlot(context.Background(), subject).Val())
	return m
}

// move moves the slot as redis-cli does, two keys at a time, so that most of the time the counters
// of a call lie on both sides.
func (m *mover) move(from, to int) {
	m.t.Helper()
	ctx, begin, moved := context.Background(), time.Now(), 0
	m.set(to, "importing", m.ids[from])
	m.set(from, "migrating", m.ids[to])
	host, port, _ := net.SplitHostPort(m.masters[to].Options().Addr)
	for {
		keys, err := m.masters[from].ClusterGetKeysInSlot(ctx, m.slot, 2).Result()
		if err != nil {
			m.t.Fatal(err)
		}
		if len(keys) == 0 {
			break
		}
		migrate := []any{"migrate", host, port, "", 0, 5000, "keys"}
		for _, key := range keys {
			migrate = append(migrate, key)
		}
		if err := m.masters[from].Do(ctx, migrate...).Err(); err != nil {
			m.t.Fatalf("%q cannot be moved: %v", keys, err)
		}
		moved += len(keys)
		time.Sleep(5 * time.Millisecond)
	}
	m.set(to, "node", m.ids[to])
	m.set(from, "node", m.ids[to])
	m.keys, m.longest = max(m.keys, moved), max(m.longest, time.Since(begin))
	time.Sleep(50 * time.Millisecond)
}

// set sets the state of the slot on a master.
func (m *mover) set(master int, state, id string) {
	m.t.Helper()
	if err := m.masters[master].Do(context.Background(), "cluster", "setslot", m.slot, state, id).Err(); err != nil {
		m.t.Fatalf("the slot cannot be moved: %v", err)
	}
}
