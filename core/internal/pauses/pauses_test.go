package pauses

import (
	"context"
	"fmt"
	"math"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
	"github.com/accesslimit/accesslimit/core/internal/background"
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
	second  = int64(1_000_000)
	hour    = 3600 * second
)

// shared are pauses in Redis, whose tasks are done at once.
type shared struct {
	*Pauses
	client *redis.Client
	t      *testing.T
}

func newShared(t *testing.T, most int) shared {
	t.Helper()
	client := redistest.Start(t).Client(t)
	store := redisstore.New(client, patient)
	bounded.Cleanup(t, store.Close)
	p := New(NewTable(), store, nil, head, background.Runner{Start: func(do func()) { do() }}, failing{t})
	p.most = most
	return shared{p, client, t}
}

// failing is a Log that must stay empty.
type failing struct{ t *testing.T }

func (f failing) PausesFailed(err error) { f.t.Error(err) }
func (f failing) PausesOff(err error)    { f.t.Error(err) }

// record records a pause, and lists it.
func (s shared) record(key string, span int64) {
	s.t.Helper()
	store := redisstore.New(s.client, patient)
	defer store.Close()
	c := algorithm.Change{Kind: algorithm.Pauses, Key: s.Stored("n", key), Pause: &algorithm.Pause{Span: span}}
	if err := store.Change(context.Background(), &c); err != nil {
		s.t.Fatal(err)
	}
	<-s.Recorded(context.Background(), "n", key, c.Paused)
}

// listed returns the keys in force of a list that is read in pages.
func (s shared) listed(page int) (keys []string) {
	s.t.Helper()
	for after, more := "", true; more; more = after != "" {
		found, next, err := s.Page(context.Background(), "n", after, page)
		if err != nil {
			s.t.Fatal(err)
		}
		for _, e := range found {
			keys = append(keys, e.Key)
		}
		after = next
	}
	return keys
}

// The list has the pauses in force in the order of their keys, however they are read, and expires
// with the last.
func TestTheListForgets(t *testing.T) {
	s := newShared(t, 1000)
	list := rediskey.PauseList(head, "n")
	for i := range 70 {
		s.client.ZAdd(context.Background(), list, redis.Z{Member: fmt.Sprint("ended ", i), Score: float64(i)})
	}
	var want []string
	for i := range 7 {
		want = append(want, fmt.Sprint(9-i))
		s.record(fmt.Sprint(9-i), hour)
	}
	slices.Sort(want)
	if all := s.client.ZRange(context.Background(), list, 0, -1).Val(); len(all) != len(want) {
		t.Errorf("the list has %q", all)
	}
	for _, page := range []int{1, 3, 7, 100} {
		if got := s.listed(page); !slices.Equal(got, want) {
			t.Errorf("in pages of %d: %q", page, got)
		}
	}
	if left := s.client.PTTL(context.Background(), list).Val(); left < time.Hour || left > time.Hour+2*time.Minute {
		t.Errorf("the list lives for %v", left)
	}
	s.client.Del(context.Background(), string(s.Stored("n", "5")))
	<-s.Lifted(context.Background(), "n", "6")
	if got := s.listed(100); len(got) != len(want)-2 || slices.Contains(got, "5") || slices.Contains(got, "6") {
		t.Errorf("without 5 and 6: %q", got)
	}
}

// If there are too many pauses, those stay that end last.
func TestTheListIsBounded(t *testing.T) {
	s := newShared(t, 5)
	for i := range 12 {
		s.record(fmt.Sprintf("%02d", i), hour+int64(i)*second)
	}
	if got := s.listed(100); len(got) != 5 || got[0] != "07" {
		t.Errorf("listed are %q", got)
	}
}

// A list longer than one command reads is read whole.
func TestALongListIsReadWhole(t *testing.T) {
	s := newShared(t, mostListed)
	pipe := s.client.Pipeline()
	for i := range 2*listedAtOnce + 1 {
		pipe.ZAdd(context.Background(), rediskey.PauseList(head, "n"), redis.Z{Member: fmt.Sprint(i), Score: 1e15})
	}
	if _, err := pipe.Exec(context.Background()); err != nil {
		t.Fatal(err)
	}
	if keys, err := s.list(context.Background(), "n"); len(keys) != 2*listedAtOnce+1 || err != nil {
		t.Errorf("%d keys are listed, %v", len(keys), err)
	}
}

var stored = []byte("stored")

// saw has the table see an answer of the store, to a question that was sent just before.
func saw(t *Table, lasts int64) {
	sent := t.Sent() + 1
	t.Saw(stored, "n", "k", &algorithm.Verdict{At: 1e15, RetryAfter: lasts}, sent)
}

// An answer of the store adds a pause, or removes it, unless it is older than what is known.
func TestTheTableFollowsAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		table := NewTable()
		want := func(what string, lasts int64) {
			t.Helper()
			if got := table.Lasts(stored); got != lasts {
				t.Errorf("%s: it lasts for %d, want %d", what, got, lasts)
			}
		}
		early := table.Sent()
		time.Sleep(time.Millisecond)
		saw(table, 5*second)
		want("met in an answer", 5*second)
		time.Sleep(time.Second)
		want("a second later", 4*second)
		table.Saw(stored, "n", "k", new(algorithm.Verdict), early)
		want("after an answer that was on its way", 4*second)
		saw(table, 0)
		want("not in an answer", 0)
		time.Sleep(time.Millisecond)
		before := table.Sent()
		table.Lift(stored)
		table.Saw(stored, "n", "k", &algorithm.Verdict{RetryAfter: hour}, before)
		want("ended by an operator, after an answer that was on its way", 0)
	})
}

// A pause that the store does not record holds here: the later end wins.
func TestTheTableHolds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		table := NewTable()
		for _, step := range []struct {
			span, lasts int64
			longer      bool
		}{{0, second, true}, {0, second, false}, {hour, hour, true}, {second, hour, false}} {
			got := table.Hold(stored, "n", "k", &algorithm.Pause{Span: step.span, Base: second})
			if got.Lasts != step.lasts || got.Longer != step.longer || table.Lasts(stored) != step.lasts {
				t.Errorf("%+v, want %+v", got, step)
			}
		}
		counters := []algorithm.Counter{{Key: stored, Limit: &algorithm.PauseLimit}, {Key: stored, Limit: new(algorithm.Any())}}
		verdicts := []algorithm.Verdict{{Err: context.Canceled}, {Err: context.Canceled}}
		table.StandIn(counters, verdicts)
		if verdicts[0].RetryAfter != hour || verdicts[0].Err != nil || verdicts[1].Err == nil {
			t.Errorf("the verdicts are %+v", verdicts)
		}
	})
}

// The table is bounded by ended pauses and by those that end soon.
func TestTheTableIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		table := NewTable()
		table.most = 2_000
		remember := func(from, n int, lasts int64) {
			for i := range n {
				table.remember(fmt.Append(nil, from+i), "n", fmt.Sprint(from+i), 1e15, lasts+int64(i), math.MaxInt64)
			}
		}
		remember(0, 3_000, hour)
		if n := len(table.known); n != 2_000 {
			t.Errorf("%d pauses are known", n)
		}
		time.Sleep(2 * time.Hour)
		remember(10_000, 1_500, hour)
		visited := 0
		table.Each(func(string, string, int64) { visited++ })
		if visited != 1_500 {
			t.Errorf("%d pauses hold", visited)
		}
	})
}
