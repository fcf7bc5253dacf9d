package rivals

import (
	"strings"
	"sync"
	"time"

	"github.com/maypok86/otter/v2"
)

// otterBuckets is the cache library otter v2, with a token bucket behind a mutex for each key. It
// forgets a bucket once it is full again.
var otterBuckets = InProcess{"buckets in otter", func(l Limit, keys int) (func(string) bool, func()) {
	room := l.Permit * time.Duration(l.Max)
	cache := otter.Must(&otter.Options[string, *otterBucket]{
		MaximumSize: max(2*keys, 250_000), ExpiryCalculator: otter.ExpiryAccessing[string, *otterBucket](room),
	})
	return func(subject string) bool {
		b, found := cache.GetIfPresent(subject)
		if !found {
			b, _ = cache.SetIfAbsent(strings.Clone(subject), new(otterBucket)) // the subject is valid only during its request
		}
		return b.take(l.Permit, room)
	}, func() { cache.StopAllGoroutines() }
}}

// otterBucket is the time when a bucket will be full again.
type otterBucket struct {
	mu   sync.Mutex
	full time.Time
}

func (b *otterBucket) take(permit, room time.Duration) bool {
	now := time.Now()
	b.mu.Lock()
	defer b.mu.Unlock()
	full := now
	if b.full.After(now) {
		full = b.full
	}
	if full = full.Add(permit); full.Sub(now) > room {
		return false
	}
	b.full = full
	return true
}
