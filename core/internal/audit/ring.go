package audit

import (
	"context"
	"sync"
	"time"
)

// Ring is a Trail in this process. Its zero value is empty.
type Ring struct {
	mu      sync.Mutex
	entries []Entry // a ring, once there are maxEntries
	oldest  int
	last    position
}

// Append implements Trail.
func (r *Ring) Append(_ context.Context, e Entry) error {
	e = e.cut()
	r.mu.Lock()
	defer r.mu.Unlock()
	at := position{milli: uint64(max(0, time.Now().UnixMilli()))}
	if !r.last.less(at) { // in the same millisecond, or the clock stepped back
		at = position{r.last.milli, r.last.number + 1}
	}
	r.last, e.ID, e.Time = at, at.String(), at.time()
	if len(r.entries) < maxEntries {
		r.entries = append(r.entries, e)
		return nil
	}
	r.entries[r.oldest] = e
	r.oldest = (r.oldest + 1) % len(r.entries)
	return nil
}

// AppendChange implements Trail. There is no other process.
func (r *Ring) AppendChange(ctx context.Context, e Entry, _, _ string) error { return r.Append(ctx, e) }

// read implements Trail.
func (r *Ring) read(_ context.Context, before string, n int) (entries []Entry, err error) {
	end, bounded := parsePosition(before)
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := len(r.entries) - 1; i >= 0 && len(entries) < n; i-- {
		e := r.entries[(r.oldest+i)%len(r.entries)]
		if at, _ := parsePosition(e.ID); !bounded || at.less(end) {
			entries = append(entries, e)
		}
	}
	return entries, nil
}
