package redisstore

import (
	"sync"
	"time"
)

// manySize chooses how many keys a call of decide_many.lua has at most, so that it holds up the
// server's other clients for at most mostHeld. The server does not take longer for a key than it
// seems to take while many are decided in a short time.
type manySize struct {
	mu      sync.Mutex
	began   time.Duration    // of the present sample; like all times here since the shard's start
	decided int              // keys in the present sample
	least   [2]time.Duration // time for a key in the best sample of this period, and of the last
	ends    time.Duration    // of this period
}

const (
	// mostHeld is for how long one call may hold the server.
	mostHeld = 250 * time.Microsecond
	// mostKeys is how many keys a call has at most, and firstKeys before there is a sample. Of
	// the cycles of a call by itself, the server takes 0.98 for each key with 2 keys, 0.78 with 4,
	// 0.66 with 8, 0.63 with 16, and 0.59 with 24 or 48 (redis-server 7.0, TokenBucket).
	//
	// With fewer than fewestKeys nothing is gained.
	mostKeys, firstKeys, fewestKeys = 24, 8, 4

	sampleTime, periodTime = 20 * time.Millisecond, time.Second
)

// keys returns how many keys a call may have.
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

// observe adds keys that were decided by now to the present sample.
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
