package redisstore

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
	"github.com/accesslimit/accesslimit/core/internal/panics"
)

// Store decides through one client. It is safe for concurrent use.
type Store struct {
	*common
	router    router
	forecasts forecastTable
	giveBack  func([]algorithm.Charge)
	turns     chan struct{} // one value for each turn that is taken
}

// New returns a store. It does not connect. Timeout bounds every call.
func New(client redis.UniversalClient, timeout time.Duration) *Store {
	s := &Store{common: newCommon(timeout), turns: make(chan struct{}, turns)}
	s.forecasts.start = time.Now()
	s.giveBack = func(charges []algorithm.Charge) {
		s.InBackground(func() { _ = s.Change(context.Background(), &algorithm.Change{Charges: charges}) })
	}
	s.router = newRouter(client, s.common)
	return s
}

// GiveBackBy sets the function that gives back, in the background, the charges of some shards if
// another shard refused the call. It must be called before the first decision. By default the store
// gives them back itself.
func (s *Store) GiveBackBy(giveBack func([]algorithm.Charge)) { s.giveBack = giveBack }

// JoinKeys lets one script decide calls on different keys, on servers that hold all of them. All
// keys begin with keyHead, which ends with the brace. JoinKeys must be called before the first
// decision.
func (s *Store) JoinKeys(keyHead string) { s.keyHead = keyHead }

// WatchMemory reports servers that lose data to the listener. The keys of the marks that it takes
// begin with keyHead, which ends with the brace. WatchMemory must be called before the first decision.
func (s *Store) WatchMemory(keyHead string) { s.markHead = keyHead }

// Listen sets the listener. It must be called before the first call.
func (s *Store) Listen(l Listener) { s.listener = l }

// Panicked reports a panic that was caught elsewhere.
func (s *Store) Panicked(err error) { s.listener.Panicked(err) }

// Close returns when everything that runs in the background has ended, and charges have been given
// back as far as possible in time. The client stays open, because it belongs to the caller.
func (s *Store) Close() { s.close() }

// InBackground runs a function that Close waits for. Once the store is closed, InBackground itself
// waits for the function.
func (s *Store) InBackground(do func()) {
	if !s.inBackground(do) {
		panics.Guard(do, s.listener.Panicked)()
	}
}
