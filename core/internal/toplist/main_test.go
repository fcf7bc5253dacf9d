package toplist

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

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
)

var background = context.Background()

// newRedis returns slots in Redis.
func newRedis(t testing.TB, client redis.UniversalClient) *Redis {
	store := redisstore.New(client, patient)
	bounded.Cleanup(t, store.Close)
	return NewRedis(store, head)
}

// newTable returns a table that adds to slots only when the test flushes it, and whose clock the test
// sets. Errors fail the test.
func newTable(t testing.TB, slots Slots, clock *time.Duration) *Table {
	table := New(unhurried{slots}, func(func()) {}, logFunc(func(err error) { t.Error(err) }))
	table.now = func() time.Duration { return *clock }
	bounded.Cleanup(t, table.Close)
	return table
}

// unhurried are slots that are added to even if a busy machine needs longer than a flush may take.
type unhurried struct{ Slots }

func (u unhurried) Add(ctx context.Context, list string, of kind, entries []Entry) (added int, err error) {
	return u.Slots.Add(context.WithoutCancel(ctx), list, of, entries)
}

// observe notes a refusal of a user, as the core does.
func observe(r *Rule, number uint64, n int) {
	if weight := r.Weight(Refused, number); weight > 0 {
		r.NoteRefusal(weight, []byte(user(n)))
	}
}

// logFunc is a Log that passes all errors to a function.
type logFunc func(error)

func (f logFunc) TopFailed(err error) { f(err) }
func (f logFunc) TopOff(err error)    { f(err) }

func user(n int) string { return fmt.Sprint("user:", n) }

// clocked is a client of a server whose clock the test sets.
type clocked struct {
	redis.UniversalClient
	mu    sync.Mutex
	now   time.Time
	texts map[any]string // the scripts with the test's clock, by the SHA-1 of their own text
}

// Process implements redis.UniversalClient.
func (c *clocked) Process(ctx context.Context, cmd redis.Cmder) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	args := slices.Clone(cmd.Args())
	if c.texts == nil {
		c.texts = make(map[any]string)
	}
	if args[0] == "eval" {
		timed, err := scriptclock.TakeTimeAndExpire(args[1].(string))
		if err != nil {
			panic(err)
		}
		c.texts[redis.NewScript(args[1].(string)).Hash()] = timed
		args[1] = timed
	} else if text := c.texts[args[1]]; args[0] == "evalsha" && text != "" {
		args[0], args[1] = "eval", text
	}
	if args[0] == "eval" {
		args = append(args, c.now.UnixMicro())
	}
	done := redis.NewCmd(ctx, args...)
	err := c.UniversalClient.Process(ctx, done)
	cmd.SetErr(err)
	cmd.(interface{ SetVal(any) }).SetVal(done.Val())
	return err
}

// onBothEngines runs a test with slots in this process and in Redis, whose replies have another form
// in each version of the protocol. The clock of all is that of the test.
func onBothEngines(t *testing.T, test func(t *testing.T, slots Slots, set func(time.Time))) {
	t.Run("memory", func(t *testing.T) {
		var now time.Time
		test(t, &Memory{clock: func() time.Time { return now }}, func(at time.Time) { now = at })
	})
	for _, version := range []int{2, 3} {
		t.Run(fmt.Sprint("RESP", version), func(t *testing.T) {
			client := &clocked{UniversalClient: redistest.Start(t).Client(t, func(o *redis.Options) { o.Protocol = version })}
			test(t, newRedis(t, client), func(at time.Time) { client.now = at })
		})
	}
}
