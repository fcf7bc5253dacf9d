package core_test

import (
	"context"
	"sync"
	"testing"

	"github.com/accesslimit/accesslimit/core"
)

// decisions notes what OnDecision receives.
type decisions struct {
	mu    sync.Mutex
	heard []core.Decision
}

func (d *decisions) note(_ context.Context, e core.Event) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.heard = append(d.heard, e.Decision)
}

// last returns the newest of exactly n decisions.
func (d *decisions) last(t testing.TB, n int) core.Decision {
	t.Helper()
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.heard) != n {
		t.Fatalf("OnDecision was called %d times, want %d", len(d.heard), n)
	}
	return d.heard[n-1]
}
