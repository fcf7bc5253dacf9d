package overrides_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
	"github.com/accesslimit/accesslimit/core/internal/failure"
	"github.com/accesslimit/accesslimit/core/internal/overrides"
	"github.com/accesslimit/accesslimit/core/internal/rediskey"
	"github.com/accesslimit/accesslimit/core/internal/redisstore"
	"github.com/accesslimit/accesslimit/internal/bounded"
	"github.com/accesslimit/accesslimit/internal/leakcheck"
	"github.com/accesslimit/accesslimit/internal/redistest"
	"github.com/accesslimit/accesslimit/internal/scriptclock"
)

func TestMain(m *testing.M) { leakcheck.Main(m) }

const (
	patient = time.Minute
	head    = "test:{"
	name    = "api"
)

var background = context.Background()

// blocked returns an override, as Set takes it.
func blocked() *algorithm.Override {
	return &algorithm.Override{What: algorithm.OverrideBlocked, Span: "sw1:1000000"}
}

// newStore returns the overrides of a name through a client.
func newStore(t *testing.T, client redis.UniversalClient, most int) *overrides.Store {
	shared := redisstore.New(client, patient)
	bounded.Cleanup(t, shared.Close)
	return overrides.New(shared, head, name, most)
}

// subjectsOf returns the subjects of a complete list, read in pages.
func subjectsOf(s *overrides.Store, page int) (subjects []string, err error) {
	for after, more := "", true; more; more = after != "" {
		entries, next, err := s.List(background, after, page)
		if err != nil {
			return nil, err
		}
		for _, e := range entries {
			subjects = append(subjects, e.Subject)
		}
		after = next
	}
	return subjects, nil
}

// badNetwork is a client of a server whose clock the test sets. Commands get lost before they
// arrive, or their replies do, or they arrive hours later, when nobody waits for them any more.
type badNetwork struct {
	redis.UniversalClient
	mu      sync.Mutex
	random  *rand.Rand
	healthy bool
	now     int64 // microseconds since the epoch
	late    [][]any
	texts   map[string]string // the scripts with the test's clock, by the SHA-1 of their own text
	check   func()            // after each command
	ends    []time.Time       // the deadlines of the commands, if the network is healthy
}

// errLost is the error of a command whose reply does not come.
var errLost = fmt.Errorf("the connection broke: %w", io.ErrUnexpectedEOF)

// Process implements redis.UniversalClient.
func (n *badNetwork) Process(ctx context.Context, cmd redis.Cmder) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.now += n.random.Int64N(int64(10 * time.Millisecond / time.Microsecond))
	if n.healthy {
		end, _ := ctx.Deadline()
		n.ends = append(n.ends, end)
		return n.deliver(cmd.Args(), cmd)
	}
	if n.random.IntN(20) == 0 {
		n.now += n.random.Int64N(int64(90 * time.Minute / time.Microsecond))
	}
	for len(n.late) > 0 && n.random.IntN(4) == 0 {
		n.deliverLate(n.random.IntN(len(n.late)))
	}
	switch n.random.IntN(12) {
	case 0:
		cmd.SetErr(errLost)
		return errLost
	case 1:
		_ = n.deliver(cmd.Args(), nil)
		cmd.SetErr(errLost)
		return errLost
	case 2, 3:
		n.late = append(n.late, slices.Clone(cmd.Args()))
		cmd.SetErr(errLost)
		return errLost
	}
	return n.deliver(cmd.Args(), cmd)
}

func (n *badNetwork) deliverLate(i int) {
	args := n.late[i]
	n.late = slices.Delete(n.late, i, i+1)
	_ = n.deliver(args, nil)
}

// deliver runs a command on the server, and checks the server afterwards. Clocks differ by up to 28
// minutes.
func (n *badNetwork) deliver(args []any, reply redis.Cmder) error {
	args = slices.Clone(args)
	if name := args[0]; name == "eval" {
		own := redis.NewScript(args[1].(string)).Hash()
		timed, err := scriptclock.TakeTime(args[1].(string))
		if err != nil {
			panic(err)
		}
		n.texts[own] = timed
	}
	if args[0] == "evalsha" && n.texts[args[1].(string)] != "" {
		args[0], args[1] = "eval", n.texts[args[1].(string)]
	} else if args[0] == "eval" {
		args[1] = n.texts[redis.NewScript(args[1].(string)).Hash()]
	}
	if args[0] == "eval" {
		now := n.now
		if !n.healthy && n.random.IntN(5) == 0 {
			now += n.random.Int64N(int64(28 * time.Minute / time.Microsecond))
		}
		args = append(args, now)
	}
	done := redis.NewCmd(background, args...)
	err := n.UniversalClient.Process(background, done)
	n.check()
	if reply != nil {
		reply.SetErr(err)
		reply.(interface{ SetVal(any) }).SetVal(done.Val())
	}
	return err
}

// missing returns a subject that has an override and is not in the index.
var missing = redis.NewScript(`for i = 2, #KEYS do
  if redis.call('EXISTS', KEYS[i]) == 1 and not redis.call('ZSCORE', KEYS[1], ARGV[i - 1]) then return ARGV[i - 1] end
end
return ''`)

// wantComplete checks that the index, the first key, has each subject whose key exists.
func wantComplete(t *testing.T, server *redis.Client, seed uint64, keys, subjects []string) {
	found, err := missing.Run(background, server, keys, subjects).Text()
	if err != nil || found != "" {
		t.Errorf("seed %d: the index misses %q, %v", seed, found, err)
	}
}

// The index never misses an override, whatever is lost or late, and whoever sets, removes and lists
// at the same time. A list has each override that holds throughout, once.
func TestTheIndexNeverMissesAnOverride(t *testing.T) {
	const workers = 4
	steps := 250
	if os.Getenv("ACCESSLIMIT_LONG") != "" {
		steps = 20_000
	}
	server := redistest.Start(t).Client(t)
	seed := uint64(time.Now().UnixNano())
	network := &badNetwork{
		UniversalClient: server, random: rand.New(rand.NewPCG(seed, 0)), now: time.Now().UnixMicro(), texts: make(map[string]string),
	}
	inOrder, _ := rediskey.OverrideIndex(head, name)
	tail := rediskey.OverrideTail(name)
	subjects := []string{"user:a", "user:b", "user:c", "user:d", "user:stays"}
	keys := []string{inOrder}
	for _, subject := range subjects {
		keys = append(keys, string(rediskey.Append(nil, head, subject, tail)))
	}
	network.check = func() { wantComplete(t, server, seed, keys, subjects) }
	network.healthy = true
	store := newStore(t, network, 100)
	if _, _, err := store.Set(background, "user:stays", blocked()); err != nil {
		t.Fatal(err)
	}
	network.healthy = false
	var all sync.WaitGroup
	for worker := range workers {
		all.Go(func() {
			random := rand.New(rand.NewPCG(seed, uint64(worker+1)))
			for range steps {
				subject := subjects[random.IntN(4)]
				switch random.IntN(3) {
				case 0:
					_, _, _ = store.Set(background, subject, blocked())
				case 1:
					_, _, _ = store.Remove(background, subject)
				default:
					listed, err := subjectsOf(store, 2)
					if err == nil && (!slices.IsSorted(listed) || len(slices.Compact(slices.Clone(listed))) != len(listed) || !slices.Contains(listed, "user:stays")) {
						t.Errorf("seed %d: the list is %q", seed, listed)
					}
				}
			}
		})
	}
	all.Wait()
	for len(network.late) > 0 {
		network.deliverLate(0)
	}
	// Once nothing is on its way, the index loses what has no override.
	network.healthy = true
	network.now += int64(2 * time.Hour / time.Microsecond)
	if _, err := subjectsOf(store, 10); err != nil {
		t.Fatal(err)
	}
	if indexed, holds := server.ZRange(background, inOrder, 0, -1).Val(), existing(server, subjects, keys[1:]); !slices.Equal(indexed, holds) {
		t.Errorf("seed %d: the index has %q, want %q", seed, indexed, holds)
	}
}

// existing returns the subjects whose keys exist.
func existing(server *redis.Client, subjects, keys []string) (found []string) {
	for i, subject := range subjects {
		if server.Exists(background, keys[i]).Val() == 1 {
			found = append(found, subject)
		}
	}
	return found
}

// An override that comes too late is not written, and the error says why.
func TestAnOverrideThatComesTooLate(t *testing.T) {
	network := &badNetwork{
		UniversalClient: redistest.Start(t).Client(t), random: rand.New(rand.NewPCG(1, 1)), now: time.Now().UnixMicro(),
		texts: make(map[string]string), healthy: true,
	}
	network.check = func() { network.now += int64(2 * time.Minute / time.Microsecond) }
	store := newStore(t, network, 10)
	if _, _, err := store.Set(background, "user:a", blocked()); failure.ClassOf(err) != failure.NotReady || !strings.Contains(err.Error(), "clocks") {
		t.Errorf("%v", err)
	}
	if _, ok, err := store.Get(background, "user:a"); ok || err != nil {
		t.Errorf("%v, %v", ok, err)
	}
}

// A full index has room again when overrides have ended or were removed, after an hour. One that
// replaces another needs no room.
func TestRoomForOverrides(t *testing.T) {
	const most = 2500 // more than are looked at together
	server := redistest.Start(t).Client(t)
	network := &badNetwork{
		UniversalClient: server, random: rand.New(rand.NewPCG(1, 1)), now: time.Now().UnixMicro(), texts: make(map[string]string),
		check: func() {}, healthy: true,
	}
	store := newStore(t, network, most)
	set := func(i int, want error) {
		t.Helper()
		if _, _, err := store.Set(background, fmt.Sprintf("user:%05d", i), blocked()); !errors.Is(err, want) {
			t.Fatalf("override %d: %v, want %v", i, err, want)
		}
	}
	set(0, nil)
	inOrder, byTime := rediskey.OverrideIndex(head, name)
	pipe := server.Pipeline()
	for i := 1; i < most; i++ { // as if each had been set, and the last 3 removed
		subject := fmt.Sprintf("user:%05d", i)
		pipe.ZAdd(background, inOrder, redis.Z{Member: subject})
		pipe.ZAdd(background, byTime, redis.Z{Score: float64(network.now), Member: subject})
		if i < most-3 {
			pipe.Set(background, string(rediskey.Append(nil, head, subject, rediskey.OverrideTail(name))), "x", 0)
		}
	}
	if _, err := pipe.Exec(background); err != nil {
		t.Fatal(err)
	}
	set(most, overrides.ErrTooMany)
	set(1, nil)
	network.now += int64(2 * time.Hour / time.Microsecond)
	network.ends = nil
	set(most, nil)
	if first, last := network.ends[0], network.ends[len(network.ends)-1]; len(network.ends) < 5 || first.IsZero() || !first.Equal(last) {
		t.Errorf("making room has until %v, and Set until %v", first, last)
	}
	set(most+1, nil)
	set(most+2, nil)
	set(most+3, overrides.ErrTooMany)
}
