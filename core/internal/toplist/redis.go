package toplist

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
	"github.com/accesslimit/accesslimit/core/internal/failure"
	"github.com/accesslimit/accesslimit/core/internal/rediskey"
	"github.com/accesslimit/accesslimit/core/internal/redisstore"
)

// The script is in this package because it does not depend on algorithms.
var (
	//go:embed flush.lua
	flushText   string
	flushScript = algorithm.NewScript(flushText)
)

const (
	// maxTogether is how many entries one script call adds. With 25 entries, the slow log of Redis
	// 7.0 shows 15 to 110 µs, and with 100 up to 330.
	maxTogether = 25
	// keptFor is how many minutes a slot is kept from the beginning of its minute. The oldest slot
	// that Read needs can be 61 minutes old.
	keptFor = 62
)

// aMinute is a minute in microseconds.
const aMinute = int64(time.Minute / time.Microsecond)

var (
	// ErrTooManyRules is the error if a rule can have no list because too many other rules have
	// one.
	ErrTooManyRules = errors.New("too many rules have lists of refused subjects")
	// errOdd is reported if a list, or a part of one, was not written by this library.
	errOdd = errors.New("a list of refused subjects has an entry that this library does not write")
)

// Redis holds the slots of all processes with a prefix, in Redis.
type Redis struct {
	redis   *redisstore.Store
	keyHead string
	ahead   atomic.Int64 // the clock of Redis minus this process's clock, in microseconds
}

// NewRedis returns the slots in Redis. All keys begin with keyHead.
func NewRedis(redis *redisstore.Store, keyHead string) *Redis {
	return &Redis{redis: redis, keyHead: keyHead}
}

func (s *Redis) key(list string, of kind, minute int64) string {
	return rediskey.TopList(s.keyHead, list, [kinds]string{Refused: "tr2", Near: "tn1"}[of], minute)
}

// Add implements Slots. Its errors are those above and *failure.Error.
func (s *Redis) Add(ctx context.Context, list string, of kind, entries []Entry) (added int, err error) {
	for added < len(entries) {
		part := entries[added:min(added+maxTogether, len(entries))]
		err := s.add(ctx, list, of, part)
		if err == nil || !errors.Is(err, ErrTooManyRules) && failure.ClassOf(err).MayHaveCharged() {
			added += len(part)
		}
		if err != nil {
			return added, err
		}
	}
	return added, nil
}

// add adds a few entries. The keys of a script must be known before it runs, but they depend on the
// clock of Redis, so add tries again if Redis was in another minute.
func (s *Redis) add(ctx context.Context, list string, of kind, entries []Entry) error {
	how := [kinds]string{Refused: "INCR", Near: "GT"}[of]
	minute := (time.Now().UnixMicro() + s.ahead.Load()) / aMinute
	for range 3 {
		args := []any{minute, list, how, lengths[of], maxRules + 1, keptFor, 2 * len(entries)}
		for _, e := range entries {
			args = append(args, strconv.FormatFloat(e.Number, 'f', -1, 64), e.Subject)
		}
		now, code, err := s.runFlush(ctx, []string{s.key(list, of, minute), rediskey.TopIndex(s.keyHead)}, args)
		switch {
		case err != nil:
			return err
		case code == 1:
			return nil
		case code == 0:
			return ErrTooManyRules
		}
		s.ahead.Store(now - time.Now().UnixMicro())
		minute = now / aMinute
	}
	return &failure.Error{Class: failure.NotReady, Err: errors.New("the clock of Redis showed another minute on each attempt")}
}

func (s *Redis) runFlush(ctx context.Context, keys []string, args []any) (now, code int64, err error) {
	err = s.redis.Operate(ctx, func(ctx context.Context) error {
		reply, err := s.redis.Script(ctx, flushScript, keys, args...)
		if err != nil {
			return err
		}
		if len(reply) != 2 {
			return unexpected(reply)
		}
		now, _ = reply[0].(int64)
		code, _ = reply[1].(int64)
		return nil
	})
	return now, code, err
}

func unexpected(reply any) error {
	return &failure.Error{Class: failure.Unexpected, Err: fmt.Errorf("a reply cannot be read: %v", reply)}
}
