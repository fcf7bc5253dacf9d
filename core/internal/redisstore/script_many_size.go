package redisstore

import (
	"sync"
	"time"
)

// manySize chooses how many keys a script of a pipeline may have, so that it delays other clients of
// the server by at most mostHeld. It takes the shortest time per key that this process has seen recently
// for the server's, which is never longer.
type manySize struct {
	mu      sync.Mutex
	busy    time.Duration    // for how long calls were under way in the current sample
	decided int              // keys in the current sample
	last    time.Duration    // when the last call was answered, since the shard's start
	least   [2]time.Duration // time per key in the best sample of this period, and of the previous one
	ends    time.Duration    // of this period, since the shard's start
}

const (
	// mostHeld is how long one call may occupy the server at most.
	mostHeld = 250 * time.Microsecond
	// mostKeys is the largest number of keys of a call, and firstKeys is the number until there is
	// a sample. Compared with a script of its own, a key costs the server 0.98 of the cycles in a
	// call with 2 keys, 0.78 with 4, 0.66 with 8, 0.63 with 16, and 0.59 with 24 or 48
	// (redis-server 7.0, TokenBucket, calls in pipelines). With fewer than fewestKeys, hardly
	// anything is gained.
	mostKeys, firstKeys, fewestKeys = 24, 8, 4

	sampleTime, periodTime = 20 * time.Millisecond, time.Second
)

// keys returns the largest number of keys that a call may have now.
func (m *manySize) keys() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	least := m.least[0]
	if least == 0 || m.least[1] > 0 && m.least[1] < least {
		least = m.least[1]
	}
	if least == 0 {
		return firstKeys
	}
	return max(fewestKeys, min(mostKeys, int(mostHeld/least)))
}

// observe adds a number of keys, which were decided between two times, to the current sample. Times
// when no call was under way do not count.
func (m *manySize) observe(keys int, sent, answered time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.busy += max(0, answered-max(sent, m.last))
	m.last = max(m.last, answered)
	m.decided += keys
	if m.busy < sampleTime {
		return
	}
	if each := m.busy / time.Duration(max(1, m.decided)); m.least[0] == 0 || each < m.least[0] {
		m.least[0] = each
	}
	m.busy, m.decided = 0, 0
	if answered > m.ends {
		m.least, m.ends = [2]time.Duration{0, m.least[0]}, answered+periodTime
	}
}
