package lease

import (
	"context"

	"github.com/accesslimit/accesslimit/core/internal/panics"
)

// Reset runs a function that resets keys, while none of their permits is being fetched or given
// back, so that all earlier charges are forgotten. Leased permits are neither used nor given back,
// because after the reset they would be permits of others.
func (l *Leases) Reset(ctx context.Context, keys [][]byte, reset func() error) error {
	for _, key := range keys {
		l.tasks.beginReset(key)
		defer l.tasks.endReset(key)
	}
	for _, key := range keys {
		if err := l.dropAll(ctx, key); err != nil {
			return err
		}
	}
	return reset()
}

// dropAll takes the permits of a key out of use, and waits for those on their way back.
func (l *Leases) dropAll(ctx context.Context, key []byte) error {
	for _, e := range l.of(key) {
		if err := l.drop(ctx, e); err != nil {
			return err
		}
	}
	for _, p := range l.giveBacks.drop(key) {
		if err := l.await(ctx, p.done); err != nil {
			return err
		}
	}
	return nil
}

// drop takes the permits of a lease out of use, including those that are being fetched.
func (l *Leases) drop(ctx context.Context, e *lease) error {
	if done := e.fetchDone(); done != nil {
		if err := l.await(ctx, done); err != nil {
			return err
		}
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if b := e.batch.Swap(nil); b != nil {
		b.retire()
	}
	return nil
}

// fetchDone returns a channel that is closed when the fetch under way has come back, or nil if no
// fetch is under way.
func (e *lease) fetchDone() <-chan struct{} {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.fetch == nil {
		return nil
	}
	if e.fetch.done == nil {
		e.fetch.done = make(chan struct{})
	}
	return e.fetch.done
}

// Close gives all permits back, and waits for that as long as a call may take. After that, no
// permits are fetched in advance.
func (l *Leases) Close() {
	l.tasks.stop()
	for set := range l.table.Sets {
		for e := range set.Entries() {
			e.mu.Lock()
			l.end(e)
			e.mu.Unlock()
		}
	}
	done := make(chan struct{})
	go panics.Guard(func() {
		defer close(done)
		l.giveBacks.flush()
		l.tasks.running.Wait()
	}, l.source.Panicked)()
	_ = l.await(context.Background(), done) // what is not back in time is lost
}
