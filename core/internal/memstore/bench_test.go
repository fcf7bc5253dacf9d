package memstore

import (
	"context"
	"fmt"
	"hash/maphash"
	"math/rand/v2"
	"sync/atomic"
	"testing"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
	"github.com/accesslimit/accesslimit/core/internal/clock"
)

// BenchmarkDecide measures one decision over one counter, by as many callers as there are
// processors: over one key, over many that are there and stay, and over keys that are all new to a
// full table.
func BenchmarkDecide(b *testing.B) {
	all := limits(b, 1_000_000_000)
	for _, name := range []string{"fixed window", "sliding window", "calendar window"} {
		all[name] = new(algorithm.Windowed(all[name].Kind, 1_000_000_000, 3600*second))
	}
	for name, window := range map[string]int64{"bucket": 30 * second, "bucket by the hour": 3600 * second} {
		bucket, err := algorithm.Bucketed(window/(30*second), window, 50_000_000)
		if err != nil {
			b.Fatal(err)
		}
		all[name] = &bucket
	}
	for _, name := range []string{"bucket", "bucket by the hour", "fixed window", "sliding window", "calendar window"} {
		for what, keys := range map[string]int{"one key": 1, "100k keys": 100_000} {
			b.Run(name+"/"+what, func(b *testing.B) {
				s := New(250_000, nil)
				defer s.Close()
				benchmarkDecide(b, s, all[name], keys)
			})
		}
	}
	b.Run("bucket/flood", func(b *testing.B) {
		s := New(10_000, nil)
		defer s.Close()
		benchmarkDecide(b, s, all["bucket"], 1_000_000)
	})
}

func benchmarkDecide(b *testing.B, s *Store, limit *algorithm.Limit, n int) {
	keys := newKeys(n)
	for i := range n {
		s.Do(context.Background(), algorithm.NewOp(algorithm.AllOrNone, algorithm.Counter{Key: keys.at(i), Limit: limit, Cost: 1}))
	}
	b.ReportAllocs()
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		op := algorithm.NewOp(algorithm.AllOrNone, algorithm.Counter{Limit: limit, Cost: 1})
		keys.each(pb, func(key []byte) {
			op.Counters[0].Key = key
			s.Do(context.Background(), op)
		})
	})
}

// BenchmarkFloor measures the least work of a decision: hashing the key, reading the clock, and a
// compare-and-swap in a table that takes equal hashes for equal keys and never changes.
func BenchmarkFloor(b *testing.B) {
	for what, n := range map[string]int{"one key": 1, "100k keys": 100_000} {
		b.Run(what, func(b *testing.B) {
			keys, f := newKeys(n), newFloor(1<<18)
			for i := range n {
				f.add(keys.at(i))
			}
			b.ResetTimer()
			b.RunParallel(func(pb *testing.PB) { keys.each(pb, f.take) })
		})
	}
}

type floor struct {
	seed  maphash.Seed
	slots []floorSlot
	clock clock.Clock
}

type floorSlot struct {
	hash  uint64
	value atomic.Int64
}

func newFloor(slots int) *floor {
	f := &floor{seed: maphash.MakeSeed(), slots: make([]floorSlot, slots)}
	f.clock.Start()
	return f
}

// slot returns the slot of a hash, or the empty one that it belongs in.
func (f *floor) slot(hash uint64) *floorSlot {
	for at := hash; ; at++ {
		if s := &f.slots[at%uint64(len(f.slots))]; s.hash == hash || s.hash == 0 {
			return s
		}
	}
}

func (f *floor) add(key []byte) {
	hash := maphash.Bytes(f.seed, key)
	f.slot(hash).hash = hash
}

// take refills a bucket, and takes a permit out of it.
func (f *floor) take(key []byte) {
	s, now := f.slot(maphash.Bytes(f.seed, key)), f.clock.Awake()/1000
	for {
		if value := s.value.Load(); s.value.CompareAndSwap(value, max(value, now)+1) {
			return
		}
	}
}

// keys holds different keys of the usual length in one slice of bytes.
type keys struct {
	text []byte
	n    int
}

func newKeys(n int) (k keys) {
	k.n = n
	for i := range n {
		k.text = fmt.Appendf(k.text, "user:%09d}:reply:tb4:1000000", i)
	}
	return k
}

func (k keys) at(i int) []byte {
	size := len(k.text) / k.n
	return k.text[i*size : (i+1)*size]
}

// each calls do with keys in random order. Each is formed in the same memory, as core does.
func (k keys) each(pb *testing.PB, do func(key []byte)) {
	random, room := rand.NewPCG(rand.Uint64(), 1), make([]byte, 0, 64)
	for pb.Next() {
		room = append(room[:0], k.at(int(random.Uint64()%uint64(k.n)))...)
		do(room)
	}
}
