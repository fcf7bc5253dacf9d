package lease

import "sync/atomic"

// recentKeys is the number of keys that are remembered. Of keys that share an entry, only the one
// called last is remembered.
const recentKeys = 4096

// recentCalls remembers recently called keys without a lease. A lease is made for the second call
// on a key, because a key that is called only once gains nothing from a lease. When the first call
// was leased too, a call on one of 100,000 keys took 20 allocations or more instead of 4, and twice
// the processor time.
type recentCalls [recentKeys]recentCall

type recentCall struct {
	hash atomic.Uint64
	at   atomic.Int64
}

// note remembers a call, and reports whether the key was called before, within forgetAfter.
func (r *recentCalls) note(hash uint64, now int64) (known bool) {
	last := &r[hash%recentKeys]
	known = last.hash.Load() == hash && now < last.at.Load()+forgetAfter
	last.hash.Store(hash)
	last.at.Store(now)
	return known
}
