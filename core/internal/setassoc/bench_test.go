package setassoc_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/accesslimit/accesslimit/core/internal/setassoc"
)

// BenchmarkFind measures a search beside other readers, of one entry and of many. The maps have no
// bound, and do not record which entries were used.
func BenchmarkFind(b *testing.B) {
	for _, n := range []int{1, 10_000} {
		table := setassoc.New[item](8192)
		var syncMap sync.Map
		var locked [256]lockedMap
		for i := range n {
			it := &item{hash: uint64(i) * 0x9e3779b97f4a7c15}
			put(&table, it)
			syncMap.Store(it.hash, it)
			locked[it.hash>>56].put(it)
		}
		for name, find := range map[string]func(hash uint64) bool{
			"table":       func(hash uint64) bool { return find(&table, hash) != nil },
			"sync.Map":    func(hash uint64) bool { _, ok := syncMap.Load(hash); return ok },
			"locked maps": func(hash uint64) bool { return locked[hash>>56].find(hash) != nil },
		} {
			b.Run(fmt.Sprint(name, "/", n), func(b *testing.B) {
				b.ReportAllocs()
				b.RunParallel(func(pb *testing.PB) {
					for i := uint64(0); pb.Next(); i++ {
						// Of many entries, the table may have replaced one.
						if !find(i%uint64(n)*0x9e3779b97f4a7c15) && n == 1 {
							b.Error("not found")
						}
					}
				})
			})
		}
	}
}

// lockedMap is one of many maps, each under a lock of its own.
type lockedMap struct {
	sync.RWMutex
	items map[uint64]*item
	_     [64]byte
}

func (m *lockedMap) put(i *item) {
	m.Lock()
	defer m.Unlock()
	if m.items == nil {
		m.items = make(map[uint64]*item)
	}
	m.items[i.hash] = i
}

func (m *lockedMap) find(hash uint64) *item {
	m.RLock()
	defer m.RUnlock()
	return m.items[hash]
}
