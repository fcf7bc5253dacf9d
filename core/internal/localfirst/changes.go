package localfirst

import (
	"hash/maphash"
	"sync/atomic"
)

// changes counts what this process did to keys, by their hash. What was answered before a change is not repeated after it, also
// when the answer is still on its way: it was asked under another count.
type changes [changeCounts]atomic.Uint32

// changeCounts is how many counts there are. Two keys with one count forget each other's refusals, which costs a question.
const changeCounts = 16_384

func (c *changes) of(hash uint64) *atomic.Uint32 { return &c[hash>>32%changeCounts] }

func (s *Store) hash(key []byte) uint64 { return maphash.Bytes(s.seed, key) }

// changed says that what was known of a key is so no more.
func (s *Store) changed(key []byte) { s.changes.of(s.hash(key)).Add(1) }
