package memstore

import (
	"fmt"
	"math"
	"runtime"
	"testing"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
)

// held returns how many bytes are in use after a collection.
func held() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// A key takes 96 bytes in all if its subject is short, however large the table is, and 144 bytes if
// the subject is longer. A sliding window with use in every sub-window takes 208 bytes more.
func TestMemoryPerKey(t *testing.T) {
	const short, long = "user:key%012d", "user:f81d4fae-7dec-11d0-a765-%012d"
	for name, limit := range limits(t, 100) {
		for _, keys := range []int{15_000, 20_000} {
			wantMemory(t, name, limit, short, keys, 1, 96)
		}
	}
	wantMemory(t, "IPv6", minute(1), "ip:2001:db8:aaaa:%04x::/64", 20_000, 1, 96)
	wantMemory(t, "long subjects", limits(t, 100)["bucket"], long, 20_000, 1, 144)
	wantMemory(t, "sliding window, busy", limits(t, 100)["sliding window"], short, 20_000, 33, 304)
}

// wantMemory charges a number of keys, each in a number of sub-windows one after the other.
func wantMemory(t *testing.T, name string, limit *algorithm.Limit, subject string, keys, times int, most int64) {
	t.Helper()
	var verdict algorithm.Verdict
	key := make([]byte, 64)
	before := held()
	s, c := newStore(250_000)
	for range times {
		for i := range keys {
			key = fmt.Appendf(key[:0], subject+"}:reply:tb4:600000000", i)
			s.DecideOne(&algorithm.Counter{Key: key, Limit: limit, Cost: 1}, true, &verdict)
		}
		c.now += second / 32
	}
	used := (held() - before) / int64(keys)
	if s.Len() != keys || used > most {
		t.Errorf("%s, %d keys: %d bytes each, want at most %d", name, s.Len(), used, most)
	}
	runtime.KeepAlive(s)
}

// However many entries expire at once, a sweep looks at a few under each lock, and reaches all of
// them.
func TestSweepLocksShortly(t *testing.T) {
	s, c := newStore(5000)
	for i := range 4900 {
		s.take(fmt.Sprint("key", i), minute(1))
	}
	c.now += 60 * second
	for i := range s.shards {
		shard := &s.shards[i]
		for next := math.MaxInt; next > 0; {
			had := len(shard.entries)
			now := min(next, had)
			next = s.sweepSome(shard, next)
			if dropped := had - len(shard.entries); dropped > sweptAtOnce || dropped != now-next {
				t.Fatalf("%d entries of %d dropped under one lock", dropped, had)
			}
		}
	}
	if s.Len() != 0 {
		t.Errorf("%d keys left", s.Len())
	}
}

// A shard grows, and is searched, under one lock. So it stays small however large the store may be.
// Only beyond 16 million keys do shards get larger.
func TestShardsStaySmall(t *testing.T) {
	for maxKeys, most := range map[int]int{1: 1, 1023: 1023, 5000: 1024, 250_000: 1024, 16 << 20: 1024, 1 << 30: 1 << 16} {
		s := New(maxKeys, nil)
		if each := maxKeys / len(s.shards); each > most || len(s.shards)&(len(s.shards)-1) != 0 {
			t.Errorf("%d shards of %d keys", len(s.shards), each)
		}
	}
}

// A full shard evicts, however many keys the store may hold, because places have 16 bits.
func TestFullShardEvicts(t *testing.T) {
	s, _ := newStore(shardKeys)
	s.maxKeys = 1 << 20
	limit := minute(1)
	for i := range maxEntries + 1000 {
		s.take(fmt.Sprint("key", i), limit)
	}
	if said, there := s.size(); said != maxEntries || there != maxEntries {
		t.Errorf("%d keys, of which %d are found, in a shard of at most %d", said, there, maxEntries)
	}
}
