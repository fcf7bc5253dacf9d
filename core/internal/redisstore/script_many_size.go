package redisstore

import (
	"sync"
	"time"
)

// manySize chooses how many keys a call of decide_many.lua may have, so that the server's other
// clients wait for it for at most mostHeld. It takes the shortest time per key that this process
// has seen lately for the server's time per key, which is no longer than that.
type manySize struct {
	mu      sync.Mutex
	began   time.Duration    // of the present sample; like all moments here since the shard's start
	decided int              // keys in the present sample
	least   [2]time.Duration // time per key in the fastest sample of this period, and of the last
	ends    time.Duration    // when this period ends
}

const (
	// mostHeld is the longest time for which one call may occupy the server.
	mostHeld = 250 * time.Microsecond
	// mostKeys is the largest number of keys of a call, and firstKeys the number before there is a
	// sample. Compared with a script of its own, a key costs the server 0.98 of the cycles in a
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

// observe adds this number of keys, which have just been decided, to the present sample.
func (m *manySize) observe(keys int, now time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.decided += keys
	took := now - m.began
	if took < sampleTime {
		return
	}
	if each := took / time.Duration(max(1, m.decided)); m.least[0] == 0 || each < m.least[0] {
		m.least[0] = each
	}
	m.began, m.decided = now, 0
	if now > m.ends {
		m.least, m.ends = [2]time.Duration{0, m.least[0]}, now+periodTime
	}
}
