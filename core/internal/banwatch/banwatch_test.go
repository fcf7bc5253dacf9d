package banwatch_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
	"github.com/accesslimit/accesslimit/core/internal/banlist"
	"github.com/accesslimit/accesslimit/core/internal/banwatch"
	"github.com/accesslimit/accesslimit/core/internal/clock"
	"github.com/accesslimit/accesslimit/core/internal/knownbans"
	"github.com/accesslimit/accesslimit/core/internal/overrides"
	"github.com/accesslimit/accesslimit/core/internal/rediskey"
	"github.com/accesslimit/accesslimit/core/internal/redisstore"
	"github.com/accesslimit/accesslimit/internal/bounded"
	"github.com/accesslimit/accesslimit/internal/leakcheck"
	"github.com/accesslimit/accesslimit/internal/redistest"
)

func TestMain(m *testing.M) { leakcheck.Main(m) }

const (
	patient = time.Minute
	head    = "test:{"
)

var background = context.Background()

// world is a process that reads lists, and the Redis that holds them.
type world struct {
	*testing.T
	server *redistest.Server
	client *redis.Client
	redis  *redisstore.Store
	table  *knownbans.Table
	watch  *banwatch.Watch
	clock  *clock.Expiry
	start  time.Time
}

// failing fails the test if reading is turned off.
type failing struct{ t *testing.T }

func (f failing) BanWatchOff(err error) { f.t.Error(err) }

func newWorld(t *testing.T, rules banwatch.Rules) *world {
	t.Helper()
	server, c, start := redistest.Start(t), new(clock.Expiry), time.Now()
	c.Start()
	w := &world{T: t, clock: c, start: start, server: server, client: server.Client(t, func(o *redis.Options) { o.DialerRetries = 1 }), table: knownbans.New(c, 10_000)}
	w.redis = redisstore.New(w.client, patient)
	bounded.Cleanup(t, w.redis.Close)
	w.watch = banwatch.New(w.table, w.redis, head, banlist.NewIndex(w.redis, head, banlist.Most), rules, failing{t})
	bounded.Cleanup(t, w.watch.Close)
	return w
}

func (w *world) read() {
	w.Helper()
	if err := w.watch.Read(background); err != nil {
		w.Fatal(err)
	}
}

// block blocks a subject by a rule's override.
func (w *world) block(rule, subject string) {
	w.Helper()
	o := &algorithm.Override{What: algorithm.OverrideBlocked, Span: "sw1:60000000"}
	if _, _, err := overrides.New(w.redis, head, rule, overrides.Most).Set(background, subject, o); err != nil {
		w.Fatal(err)
	}
}

func (w *world) knows(rule, subject string) bool {
	return w.table.Lasts(rediskey.Append(nil, head, subject, rediskey.OverrideTail(rule))) > 0
}

// known returns how many of a rule's numbered subjects are known to be blocked.
func (w *world) known(rule string, of int) (n int) {
	for i := range of {
		if w.knows(rule, fmt.Sprintf("s%04d", i)) {
			n++
		}
	}
	return n
}

// A round reads a bounded part of the lists, and the next one goes on behind it. So long lists delay
// the others, but hide none.
func TestALongListIsReadInSeveralRounds(t *testing.T) {
	const many = 700
	w := newWorld(t, func() (banned, overridden []string) { return []string{"banned"}, []string{"a", "long", "z"} })
	for _, rule := range []string{"a", "z"} {
		w.block(rule, "s0000")
	}
	for i := range many {
		w.block("long", fmt.Sprintf("s%04d", i))
	}
	before := w.server.Calls("evalsha") + w.server.Calls("eval")
	w.read()
	if got := w.server.Calls("evalsha") + w.server.Calls("eval") - before; got > 12 {
		t.Errorf("a round took %d scripts", got)
	}
	if got := w.known("long", many); got == 0 || got > 600 || !w.knows("a", "s0000") || w.knows("z", "s0000") {
		t.Errorf("after a round, %d subjects are known", got)
	}
	w.read()
	if got := w.known("long", many); got != many || !w.knows("a", "s0000") || !w.knows("z", "s0000") {
		t.Errorf("after two rounds, %d subjects are known, want %d", got, many)
	}
}

// A list that is lost removes no block from the table that is still in force. Lifted blocks are
// removed.
func TestKnownBlocksAreChecked(t *testing.T) {
	w := newWorld(t, func() (banned, overridden []string) { return nil, []string{"n"} })
	w.block("n", "stays")
	w.block("n", "lifted")
	w.read()
	inOrder, byTime := rediskey.OverrideIndex(head, "n")
	lifted := string(rediskey.Append(nil, head, "lifted", rediskey.OverrideTail("n")))
	if err := w.client.Del(background, inOrder, byTime, lifted).Err(); err != nil {
		t.Fatal(err)
	}
	w.read()
	if !w.knows("n", "stays") || w.knows("n", "lifted") {
		t.Errorf("known: stays %t, lifted %t", w.knows("n", "stays"), w.knows("n", "lifted"))
	}
	w.server.Kill()
	if err := w.watch.Read(background); err == nil || !w.knows("n", "stays") {
		t.Errorf("without Redis: %v, and what is known: %t", err, w.knows("n", "stays"))
	}
}

// A ban whose order was not answered is checked by the clock of Redis, however far that is from the
// clock of this process, which no answer has told it yet.
func TestBansAreCheckedByTheClockOfRedis(t *testing.T) {
	for _, ahead := range []time.Duration{5 * time.Minute, -5 * time.Minute} {
		w := newWorld(t, func() (banned, overridden []string) { return nil, nil })
		w.clock.Read = func() (wall, monotonic int64) { return time.Now().Add(ahead).UnixNano(), int64(time.Since(w.start)) }
		key, span := []byte(head+"s}:n:ban"), time.Hour.Microseconds()
		if _, _, err := w.redis.Ban(background, key, span); err != nil {
			t.Fatal(err)
		}
		w.table.Remember(key, span, true)
		time.Sleep(time.Millisecond) // until the round begins later than that
		w.read()
		if lasts := w.table.Lasts(key); lasts > span || lasts < span-patient.Microseconds() {
			t.Errorf("with the clock %v ahead, the ban lasts %v", ahead, time.Duration(lasts)*time.Microsecond)
		}
	}
}

// Without rules, nothing is sent.
func TestNothingIsReadWithoutRules(t *testing.T) {
	w := newWorld(t, func() (banned, overridden []string) { return nil, nil })
	w.server.Kill()
	w.read()
}
