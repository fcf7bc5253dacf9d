package redisstore

import (
	"context"
	_ "embed"
	"fmt"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
	"github.com/accesslimit/accesslimit/core/internal/failure"
)

var (
	//go:embed clock.lua
	clockText   string
	clockScript = algorithm.NewScript(clockText)
)

// Now returns the time of the server that has a key, in microseconds since the epoch. It is for
// operators, so it takes a turn. It is called within Operate.
func (s *Store) Now(ctx context.Context, key string) (now int64, err error) {
	defer s.Turn(ctx)()
	reply, err := s.Script(ctx, clockScript, []string{key})
	if err != nil {
		return 0, err
	}
	if len(reply) == 1 {
		now, _ = reply[0].(int64)
	}
	if now == 0 {
		return 0, &failure.Error{Class: failure.Unexpected, Err: fmt.Errorf("a reply cannot be read: %v", reply)}
	}
	return now, nil
}
