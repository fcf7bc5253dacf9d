package redisstore

import (
	"context"
	"slices"
)

const (
	// turns is how many trips for operators may be under way together, and readTogether how many
	// commands one of them has at most. So whatever operators ask for, calls find Redis idle between
	// two of their commands, and never behind more than 48 of them.
	turns        = 4
	readTogether = 12
)

// Turn waits for a turn to read something for an operator, or for the end of the context, with which
// the read then fails. It is for one trip, and must be ended.
func (s *Store) Turn(ctx context.Context) (end func()) {
	select {
	case s.turns <- struct{}{}:
		return func() { <-s.turns }
	case <-ctx.Done():
		return func() {}
	}
}

// ReadEach is CommandEach for commands that read something for an operator. It takes turns.
func (s *Store) ReadEach(ctx context.Context, commands [][]any) []CommandReply {
	parts := slices.Collect(slices.Chunk(commands, readTogether))
	replies := make([][]CommandReply, len(parts))
	failed := s.sideBySide(len(parts), func(i int) error {
		defer s.Turn(ctx)()
		replies[i] = s.CommandEach(ctx, parts[i])
		return nil
	})
	for i, err := range failed {
		if err != nil {
			replies[i] = slices.Repeat([]CommandReply{{Err: toFailure(err, s.timeout)}}, len(parts[i]))
		}
	}
	return slices.Concat(replies...)
}
