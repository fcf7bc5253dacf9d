package redisstore

import (
	"context"
	"slices"
)

const (
	// turns is how many trips for operators may be under way at once, and readTogether is the
	// largest number of commands in one trip. So whatever operators ask for, a call never waits for
	// more than 48 of their commands.
	turns        = 4
	readTogether = 12
)

// Turn waits for a turn to read something for an operator. It also returns if the context ends, and
// then the read fails. A turn is for one trip, and must be ended.
func (s *Store) Turn(ctx context.Context) (end func()) {
	select {
	case s.turns <- struct{}{}:
		return func() { <-s.turns }
	case <-ctx.Done():
		return func() {}
	}
}

// ReadEach is commandEach for commands that read something for an operator. It takes turns.
func (s *Store) ReadEach(ctx context.Context, commands [][]any) []CommandReply {
	parts := slices.Collect(slices.Chunk(commands, readTogether))
	replies := make([][]CommandReply, len(parts))
	failed := s.sideBySide(len(parts), func(i int) error {
		defer s.Turn(ctx)()
		replies[i] = s.commandEach(ctx, parts[i])
		return nil
	})
	for i, err := range failed {
		if err != nil {
			replies[i] = slices.Repeat([]CommandReply{{Err: toFailure(err, s.timeout)}}, len(parts[i]))
		}
	}
	return slices.Concat(replies...)
}
