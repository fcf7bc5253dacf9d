package banlist_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/accesslimit/accesslimit/core/internal/banlist"
	"github.com/accesslimit/accesslimit/core/internal/memstore"
	"github.com/accesslimit/accesslimit/core/internal/panics"
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
)

var (
	background     = context.Background()
	inOrder, byEnd = rediskey.BanIndex(head, "n")
)

// newIndex returns an index of at most most bans.
func newIndex(t *testing.T, client redis.UniversalClient, most int) *banlist.Index {
	t.Helper()
	shared := redisstore.New(client, patient)
	bounded.Cleanup(t, shared.Close)
	return banlist.NewIndex(shared, head, most)
}

// endingIn returns n bans of the rule n, each of which ends a second after the one before.
func endingIn(first time.Duration, n int) (bans []banlist.Sighting) {
	for i := range n {
		end := time.Now().Add(first).UnixMicro() + int64(i)*second
		bans = append(bans, banlist.Sighting{Rule: "n", Subject: fmt.Sprintf("%v-%03d", first, i), Ends: end})
	}
	return bans
}

func add(t *testing.T, list banlist.List, bans ...banlist.Sighting) {
	t.Helper()
	if err := list.Add(background, bans); err != nil {
		t.Fatal(err)
	}
}

// wantIndex checks that both sets of the index have these subjects.
func wantIndex(t *testing.T, client *redis.Client, want []banlist.Sighting) {
	t.Helper()
	var subjects []string
	for _, ban := range want {
		subjects = append(subjects, ban.Subject)
	}
	for _, key := range []string{inOrder, byEnd} {
		got := client.ZRange(background, key, 0, -1).Val()
		slices.Sort(got)
		if !slices.Equal(got, slices.Sorted(slices.Values(subjects))) {
			t.Errorf("%s has %d subjects %.200q, want %d", key, len(got), got, len(subjects))
		}
	}
}

// Bans that have ended go as others are entered, and the index expires with its last ban.
func TestTheIndexForgets(t *testing.T) {
	client := redistest.Start(t).Client(t)
	index := newIndex(t, client, 1000)
	ended, lasting := endingIn(-time.Hour, 70), endingIn(time.Hour, 1)
	for _, ban := range ended {
		client.ZAdd(background, inOrder, redis.Z{Member: ban.Subject})
		client.ZAdd(background, byEnd, redis.Z{Member: ban.Subject, Score: float64(ban.Ends)})
	}
	for i := range 10 {
		add(t, index, lasting...)
		if n := client.ZCard(background, inOrder).Val(); n < int64(70-20*(i+1)) {
			t.Errorf("call %d left %d subjects: it takes too long", i+1, n)
		}
	}
	wantIndex(t, client, lasting)
	for _, key := range []string{inOrder, byEnd} {
		if left := client.PTTL(background, key).Val(); left < time.Hour || left > time.Hour+2*time.Minute {
			t.Errorf("%s lives for %v", key, left)
		}
	}
}

// If there are too many bans, those stay that end last.
func TestTheIndexIsBounded(t *testing.T) {
	client := redistest.Start(t).Client(t)
	index := newIndex(t, client, 100)
	bans := endingIn(time.Hour, 260)
	for i := range 13 {
		add(t, index, bans[20*i:20*i+20]...)
	}
	wantIndex(t, client, bans[160:])
	add(t, index, bans[:20]...)
	wantIndex(t, client, bans[160:])
}

// A set of the index that was removed, or evicted, leaves nothing behind that stays for ever.
func TestAnIndexWithoutOneSet(t *testing.T) {
	client := redistest.Start(t).Client(t)
	index := newIndex(t, client, 1000)
	first, later := endingIn(time.Hour, 30), endingIn(2*time.Hour, 1)
	for _, lost := range []string{inOrder, byEnd} {
		add(t, index, first...)
		client.Del(background, lost)
		left := int64(0)
		for range 100 {
			add(t, index, later...)
			if left = client.ZCard(background, inOrder).Val(); left == 1 {
				break
			}
		}
		if left != 1 {
			t.Errorf("without %s, %d subjects stay", lost, left)
		}
		client.Del(background, inOrder, byEnd)
	}
}

// A later report of a ban does not shorten it, and removing a subject removes it everywhere.
func TestAnEntryIsReplacedAndRemoved(t *testing.T) {
	client := redistest.Start(t).Client(t)
	index := newIndex(t, client, 1000)
	long, short := endingIn(time.Hour, 1)[0], endingIn(time.Hour, 1)[0]
	short.Ends -= 60 * second
	add(t, index, long)
	add(t, index, short)
	if got := client.ZScore(background, byEnd, long.Subject).Val(); int64(got) != long.Ends {
		t.Errorf("the ban ends at %v, want %v", int64(got), long.Ends)
	}
	if err := index.AddByHand(background, long, "bob", "ticket 7"); err != nil {
		t.Fatal(err)
	}
	if err := index.Remove(background, "n", long.Subject); err != nil {
		t.Fatal(err)
	}
	if keys := client.Keys(background, "*").Val(); len(keys) > 0 {
		t.Errorf("left: %q", keys)
	}
}

// The list of a process is bounded by ended bans and by those that end first.
func TestTheListOfAProcessIsBounded(t *testing.T) {
	var now atomic.Int64
	now.Store(time.Now().UnixMicro())
	store := memstore.New(100_000, now.Load)
	list := banlist.NewMemory(store, 2_000)
	subjects := func() (subjects []string) {
		page, next, err := list.Page(background, "n", "", 1_000)
		for ; err == nil; page, next, err = list.Page(background, "n", next, 1_000) {
			for _, e := range page {
				subjects = append(subjects, e.Subject)
			}
			if next == "" {
				return subjects
			}
		}
		t.Fatal(err)
		return nil
	}
	ban := func(name string, from, n int) {
		for i := range n {
			subject := fmt.Sprintf("%s%05d", name, from+i)
			key := rediskey.Append(nil, "", subject, rediskey.BanTail("n", false))
			ends, _, _ := store.Ban(background, key, int64(from+i+1)*second)
			add(t, list, banlist.Sighting{Rule: "n", Subject: subject, Ends: ends})
		}
	}
	ban("a", 0, 5_000)
	got := subjects()
	if len(got) < 1_900 || len(got) > 2_000 || got[len(got)-1] != "a04999" {
		t.Fatalf("%d bans are listed, from %v to %v", len(got), got[0], got[len(got)-1])
	}
	now.Add(4_900 * second)
	ban("b", 10_000, 1_900)
	if got := subjects(); len(got) != 2_000 || got[0] != "a04900" {
		t.Errorf("%d bans are listed, from %v", len(got), got[0])
	}
}

// Sightings passes each ban on once, until it has another end, or until writing it fails.
func TestSightings(t *testing.T) {
	var got []banlist.Sighting
	fails := errors.New("out of order")
	failure := fails
	seen := banlist.NewSightings(func(_ context.Context, bans []banlist.Sighting) error {
		got = append(got, bans...)
		return failure
	}, func(do func()) { do() }, panics.Log)
	defer seen.Close()
	end := time.Now().Add(time.Hour).UnixMicro()
	for i, step := range []struct {
		ends    int64
		failure error
		want    int
	}{{end, fails, 1}, {end, nil, 1}, {end, nil, 0}, {end + second/2, nil, 0}, {end + 2*second, nil, 1}} {
		got, failure = nil, step.failure
		for range 3 {
			seen.See([]byte("key"), "n", []byte("s"), step.ends)
		}
		seen.Flush(background)
		if len(got) != step.want || len(got) > 0 && got[0] != (banlist.Sighting{Rule: "n", Subject: "s", Ends: step.ends}) {
			t.Errorf("step %d: %+v, want %d", i, got, step.want)
		}
	}
	got = nil
	for i := range 2_000 {
		seen.See(fmt.Append(nil, i), "n", fmt.Append(nil, i), end)
	}
	if seen.Flush(background); len(got) != 500 {
		t.Errorf("%d bans waited, want 500", len(got))
	}
}

// Subjects that a framework lent for one call are copied.
func TestSightingsCopy(t *testing.T) {
	var got []banlist.Sighting
	seen := banlist.NewSightings(func(_ context.Context, bans []banlist.Sighting) error {
		got = bans
		return nil
	}, func(do func()) { do() }, panics.Log)
	subject := []byte("alice")
	seen.See([]byte("key"), "n", subject, 1)
	copy(subject, "mallory")
	seen.Close()
	seen.See([]byte("other"), "n", subject, 1)
	seen.Close()
	if len(got) != 1 || got[0].Subject != "alice" {
		t.Errorf("%+v", got)
	}
}
