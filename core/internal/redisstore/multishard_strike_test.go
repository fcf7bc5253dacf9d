package redisstore_test

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
	"github.com/accesslimit/accesslimit/internal/redistest"
)

// intercepted is a client that calls a function before each command.
type intercepted struct {
	redis.UniversalClient
	before func(redis.Cmder)
}

func (c intercepted) Process(ctx context.Context, cmd redis.Cmder) error {
	c.before(cmd)
	return c.UniversalClient.Process(ctx, cmd)
}

// banOf returns a ban of the subject of a counter, which it watches at this place of the call.
func banOf(c algorithm.Counter, at int) algorithm.Counter {
	limit := algorithm.Banned(1, 3600_000_000, 3600_000_000, 1_000_000)
	return algorithm.Counter{Key: append(bytes.Clone(c.Key), ":ban"...), Limit: &limit, Watched: []int{at}}
}

// One shard refuses when it is looked at, and lets the call pass when its ban is to count the
// refusal, because somebody gave permits back meanwhile. Then the call passes, and is charged on all
// shards.
func TestCallThatPassesAfterAllIsCharged(t *testing.T) {
	ring := redistest.StartRing(t, 3).Client(t)
	first, second, third := counter("first", daily(t, 1)), counter("second", daily(t, 2)), counter("third", daily(t, 5))
	ban := banOf(second, 1)
	other := newStore(t, ring, patient)
	refused := false // by the second shard, when it was looked at
	s := newStore(t, intercepted{ring, func(cmd redis.Cmder) {
		if args := cmd.Args(); refused && len(args) > 5 && args[3] == string(second.Key) && args[5] == any(int64(1)) { // to charge
			_, _ = other.Reset(context.Background(), second.Key)
		}
	}}, patient)
	s.mustTake(t, first, second, third, ban)
	other.mustTake(t, second)
	if _, err := other.Reset(context.Background(), first.Key); err != nil {
		t.Fatal(err)
	}
	refused = true
	if v := s.take(context.Background(), first, second, third, ban); !passes(v[0]) || !passes(v[1]) || !passes(v[2]) || !passes(v[3]) {
		t.Fatalf("%+v, want the call to pass", v)
	}
	if left := []int64{s.left(t, first), s.left(t, second), s.left(t, third)}; !slices.Equal(left, []int64{0, 1, 3}) {
		t.Errorf("%v left, want 0, 1 and 3", left)
	}
}

// A shard on which the subject is blocked is asked once: no ban counts that, and a second question
// might get no answer.
func TestABlockIsAskedOnce(t *testing.T) {
	ring := redistest.StartRing(t, 3).Client(t)
	first, blocked := counter("first", daily(t, 1)), counter("blocked", daily(t, 5))
	ban := banOf(blocked, 1)
	blocked.Own, blocked.Override = true, &algorithm.OverrideQuery{Key: append(bytes.Clone(blocked.Key), ":override"...), Limit: blocked.Limit}
	asked := 0
	s := newStore(t, intercepted{ring, func(cmd redis.Cmder) {
		if args := cmd.Args(); len(args) > 3 && args[3] == string(blocked.Key) {
			asked++
		}
	}}, patient)
	s.mustTake(t, first, blocked, ban) // first is used up, and will be asked first
	text, err := (&algorithm.Override{What: algorithm.OverrideBlocked, Span: blocked.Limit.Span()}).Append(nil)
	if err := errors.Join(err, ring.Set(context.Background(), string(blocked.Override.Key), text, 0).Err()); err != nil {
		t.Fatal(err)
	}
	asked = 0
	if v := s.take(context.Background(), first, blocked, ban); passes(v[1]) || !blocked.Override.Blocks() || asked != 1 {
		t.Errorf("%+v, asked %d times; want it blocked, asked once", v, asked)
	}
}
