package lease

import "sync/atomic"

// recentKeys is how many keys are remembered. Keys that share a place forget each other.
const recentKeys = 4096

// recentCalls remembers the keys of which a permit was asked for lately, and nothing is leased. A
// lease is made for the second call: for keys that are called once, it would only cost.
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
