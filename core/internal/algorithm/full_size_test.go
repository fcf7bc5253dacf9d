package algorithm_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
)

// Both engines also agree at the largest size and over the longest window: if a counter is full, if
// it refuses, after an entry was removed from the middle, after the clock stepped back, and if no
// entry counts any more.
func TestEnginesAgreeAtFullSize(t *testing.T) {
	s := startServer(t)
	for _, kind := range []algorithm.Kind{algorithm.SlidingLog, algorithm.Concurrency} {
		limit, e := algorithm.Windowed(kind, algorithm.MaxEntries, algorithm.MaxWindow), newEngines(early)
		counters := func(n int) []algorithm.Counter {
			return []algorithm.Counter{{Key: []byte("full"), Limit: &limit, Cost: 1, Mark: fmt.Sprint("call ", n)}}
		}
		const middle = algorithm.MaxEntries / 2
		var given algorithm.Charge
		for n := range algorithm.MaxEntries {
			e.now++
			if v := e.decide(true, e.now, counters(n))[0]; n == middle {
				given = counters(n)[0].Charged(&v)
			}
		}
		full := e.decide(true, e.now, counters(-1))[0]
		if full.RetryAfter != algorithm.MaxWindow-algorithm.MaxEntries+1 || full.Remaining != 0 {
			t.Errorf("%s: full: %+v", kind.Tag(), full)
		}
		e.giveBack(given)
		if v := e.decide(true, e.now, counters(-2))[0]; v.RetryAfter != 0 || v.Remaining != 0 {
			t.Errorf("%s: one given back: %+v", kind.Tag(), v)
		}
		if kind == algorithm.SlidingLog {
			if n := len(e.records("full", &limit)); n != algorithm.MaxEntries {
				t.Errorf("%d records", n)
			}
		}
		e.now -= hour
		wait := int64(algorithm.MaxWindow)
		if kind == algorithm.SlidingLog { // the oldest one is as much older than the newest as it was
			wait -= algorithm.MaxEntries - 1
		}
		if v := e.decide(true, e.now, counters(-3))[0]; v.RetryAfter != wait {
			t.Errorf("%s: clock an hour back: %+v", kind.Tag(), v)
		}
		e.now += algorithm.MaxWindow
		if v := e.decide(true, e.now, counters(-4))[0]; v.RetryAfter != 0 || v.Remaining != algorithm.MaxEntries-1 {
			t.Errorf("%s: a window later: %+v", kind.Tag(), v)
		}
		e.run(t, s, timed, nil)
	}
}

// However many calls follow the one that is given back, Redis reads and writes only a few elements.
// The time is measured by make bench.
func TestGivingBackFromAFullLogIsBounded(t *testing.T) {
	s, ctx := startServer(t), context.Background()
	limit, note := algorithm.Windowed(algorithm.SlidingLog, algorithm.MaxEntries, algorithm.MaxWindow), strings.Repeat("note", 64)
	pipe := s.Pipeline()
	for n := range int64(algorithm.MaxEntries) { // as charged with permits of 1
		number := binary.BigEndian.AppendUint64(nil, uint64(early+2*n+1))
		pipe.ZAdd(ctx, "log", redis.Z{Score: float64(early + n), Member: string(number[1:]) + note})
	}
	pipe.ConfigResetStat(ctx)
	number := func(section, name string) (n int64) {
		_, after, _ := strings.Cut(s.Info(ctx, section).Val(), name)
		_, _ = fmt.Sscan(after, &n)
		return n
	}
	if _, err := pipe.Exec(ctx); err != nil {
		t.Fatal(err)
	}
	before := number("persistence", "rdb_changes_since_last_save:")
	const calls = 60
	for n := range int64(calls) {
		at := early + n*n*n%algorithm.MaxEntries // old and new ones
		ask := one("log", &limit, early+algorithm.MaxEntries, 1)
		ask.counters[0].Mark = note
		if !s.giveBack(algorithm.Verdict{At: at, Position: 2*at - early + 1, Taken: 1}, ask) {
			t.Errorf("call %d: nothing was given back", n)
		}
	}
	if changes := number("persistence", "rdb_changes_since_last_save:") - before; changes > 5*calls {
		t.Errorf("%d changes to give back %d calls", changes, calls)
	}
	for command, most := range map[string]int64{"zrange": 2, "zscore": 1, "zrangebyscore": 1, "zrem": 1, "zadd": 0} {
		if n := number("commandstats", "cmdstat_"+command+":calls="); n > most*calls {
			t.Errorf("%s was called %d times to give back %d calls", command, n, calls)
		}
	}
	look := one("log", &limit, early+algorithm.MaxEntries, 1)
	look.charge = false
	if v := s.decide(timed, look)[0]; v.Remaining != calls {
		t.Errorf("%d permits are back, want %d", v.Remaining, calls)
	}
}
