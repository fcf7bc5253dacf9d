package localfirst

import (
	"context"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
	"github.com/accesslimit/accesslimit/core/internal/failure"
)

// Ban bans a subject by hand. It returns when the ban ends, and whether that is later than before.
func (s *Store) Ban(ctx context.Context, key []byte, span int64) (ends int64, changed bool, err error) {
	defer s.denied.Invalidate(key)
	ends, changed, err = s.Shared.Ban(ctx, key, span)
	switch {
	case err == nil && changed:
		s.Bans.SawStoreTime(ends - span)
		s.Bans.Remember(key, span, true)
	case err == nil:
		s.Bans.Remember(key, max(span, ends-s.Bans.StoreTime()), true) // the store's clock may not be known yet
	case failure.ClassOf(err).MayHaveCharged():
		s.Bans.Remember(key, span, true)
	}
	return ends, changed, err
}

// Pause begins a pause of the calls that go out, or makes it longer.
func (s *Store) Pause(ctx context.Context, key []byte, p *algorithm.Pause) (algorithm.Paused, error) {
	defer s.denied.Invalidate(key)
	return s.Shared.Pause(ctx, key, p)
}

// PauseOver forgets the refusals before a pause that is over.
func (s *Store) PauseOver(ctx context.Context, key []byte) error {
	defer s.denied.Invalidate(key)
	return s.Shared.PauseOver(ctx, key)
}
