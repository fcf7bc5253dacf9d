package setassoc_test

import (
	"slices"
	"sync"
	"testing"

	"github.com/accesslimit/accesslimit/core/internal/setassoc"
)

type item struct {
	hash uint64
	rank int64
}

// hashes returns hashes of one set, each with a tag of its own.
func hashes(n int) (all []uint64) {
	for i := range n {
		all = append(all, uint64(i)<<57|5)
	}
	return all
}

func find(t *setassoc.Table[item], hash uint64) *item {
	return t.Set(hash).Find(hash, func(i *item) bool { return i.hash == hash })
}

func put(t *setassoc.Table[item], i *item) (*item, bool) {
	set := t.SetForWriting(i.hash)
	set.Lock()
	defer set.Unlock()
	return set.Put(i.hash, i, func(old *item, used bool) int64 {
		if used {
			return old.rank + 100
		}
		return old.rank
	})
}

// A full set gives up the entry that ranks lowest; a pinned one stays.
func TestPutReplacesTheLowestRank(t *testing.T) {
	table := setassoc.New[item](128)
	all := hashes(setassoc.Ways + 1)
	for i, hash := range all[:setassoc.Ways] {
		if replaced, ok := put(&table, &item{hash, int64(10 - i)}); replaced != nil || !ok {
			t.Fatalf("item %d replaced %v in a set that is not full", i, replaced)
		}
	}
	last := all[setassoc.Ways]
	find(&table, all[7]) // it ranks lowest, but was found
	if replaced, ok := put(&table, &item{last, setassoc.Pinned - 100}); !ok || replaced == nil || replaced.hash != all[6] {
		t.Errorf("replaced %+v, want the item that ranks lowest", replaced)
	}
	if find(&table, all[6]) != nil || find(&table, last) == nil || find(&table, all[0]) == nil {
		t.Error("found what was replaced, or not what is there")
	}
	for range 100 { // whatever else goes, the pinned item stays
		if replaced, _ := put(&table, &item{all[6], 0}); replaced == nil || replaced.hash == last {
			t.Fatalf("replaced %+v", replaced)
		}
	}
}

// When all entries rank as pinned, there is no room.
func TestPutWithoutRoom(t *testing.T) {
	table := setassoc.New[item](128)
	all := hashes(setassoc.Ways + 1)
	for _, hash := range all[:setassoc.Ways] {
		put(&table, &item{hash, setassoc.Pinned})
	}
	if replaced, ok := put(&table, &item{all[setassoc.Ways], 0}); ok || replaced != nil {
		t.Errorf("replaced %+v, want no room", replaced)
	}
}

// An entry is found among others of the same hash, until it is removed.
func TestFindAndRemove(t *testing.T) {
	table := setassoc.New[item](256)
	if find(&table, 5) != nil {
		t.Error("found an item in an empty table")
	}
	for rank := range int64(3) {
		put(&table, &item{5, rank})
	}
	set := table.Set(5)
	second := set.Find(5, func(i *item) bool { return i.rank == 1 })
	if second == nil {
		t.Fatal("not found")
	}
	set.Lock()
	set.Remove(second)
	set.Unlock()
	var ranks []int64
	for set := range table.Sets {
		for i := range set.Entries() {
			ranks = append(ranks, i.rank)
		}
	}
	slices.Sort(ranks)
	if !slices.Equal(ranks, []int64{0, 2}) {
		t.Errorf("items %v are left, want 0 and 2", ranks)
	}
}

// Readers beside writers find whole entries only.
func TestReadersBesideWriters(t *testing.T) {
	table := setassoc.New[item](128)
	var all sync.WaitGroup
	for g := range 4 {
		all.Go(func() {
			for i := range uint64(2000) {
				hash := (i*7919 + uint64(g)) % 300
				if found := find(&table, hash<<57|hash); found != nil && found.hash != hash<<57|hash {
					t.Errorf("found %+v", found)
				}
				put(&table, &item{hash<<57 | hash, int64(i % 3)})
			}
		})
	}
	all.Wait()
}
