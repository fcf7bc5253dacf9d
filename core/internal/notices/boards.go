package notices

import (
	"context"
	_ "embed"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
	"github.com/accesslimit/accesslimit/core/internal/memstore"
	"github.com/accesslimit/accesslimit/core/internal/redisstore"
)

var (
	//go:embed post.lua
	postText   string
	postScript = algorithm.NewScript(postText)
)

// Memory is a Board in this process. It keeps notices among the counters.
type Memory struct{ Store *memstore.Store }

// Post implements Board.
func (m Memory) Post(_ context.Context, batch []Notice) []Posted {
	posted := make([]Posted, len(batch))
	for i, n := range batch {
		posted[i].First = m.Store.Post([]byte(n.Key), n.Limit, n.Ends)
	}
	return posted
}

// Redis is a Board in Redis, for all processes.
type Redis struct{ Store *redisstore.Store }

// Post implements Board.
func (r Redis) Post(ctx context.Context, batch []Notice) []Posted {
	calls := make([]redisstore.KeyScript, len(batch))
	for i, n := range batch {
		calls[i] = redisstore.KeyScript{Key: n.Key, Args: []any{n.Limit, n.Ends, algorithm.MaxNoted}}
	}
	posted := make([]Posted, len(batch))
	_ = r.Store.Operate(ctx, func(ctx context.Context) error { // each reply has its own error
		for i, reply := range r.Store.ScriptEach(ctx, postScript, calls) {
			posted[i] = Posted{First: reply.Value == int64(1), Err: reply.Err}
		}
		return nil
	})
	return posted
}
