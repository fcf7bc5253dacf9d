package notices

import (
	"context"
	"crypto/rand"
	"strconv"

	"github.com/accesslimit/accesslimit/core/internal/memstore"
	"github.com/accesslimit/accesslimit/core/internal/redisstore"
)

// Memory leaves notices in this process, among its counters.
type Memory struct{ Store *memstore.Store }

// Post implements Board.
func (m Memory) Post(_ context.Context, batch []Notice) []Posted {
	posted := make([]Posted, len(batch))
	for i := range batch {
		posted[i].First = m.Store.Post([]byte(batch[i].Key), batch[i].Ends)
	}
	return posted
}

// Redis leaves notices in Redis, for all processes. It is used by one goroutine at a time.
type Redis struct {
	store *redisstore.Store
	own   string // begins the values of this process's notices
	last  uint64
}

// NewRedis returns a board in Redis.
func NewRedis(store *redisstore.Store) *Redis { return &Redis{store: store, own: rand.Text()} }

// Post implements Board. A notice is a key that SET NX makes. It was the first if the key holds
// this process's own value afterwards. The reply to SET is not enough: it is OK even if the end of
// the key has passed, so two processes that are late would both report. The key ends a millisecond
// early, so that it is gone when the next window begins.
func (r *Redis) Post(ctx context.Context, batch []Notice) []Posted {
	values, commands := make([]string, len(batch)), make([][]any, 0, 2*len(batch))
	for i, n := range batch {
		r.last++
		values[i] = r.own + strconv.FormatUint(r.last, 36)
		commands = append(commands,
			[]any{"set", n.Key, values[i], "nx", "pxat", max(1, n.Ends/1000-1)},
			[]any{"get", n.Key})
	}
	posted := make([]Posted, len(batch))
	_ = r.store.Operate(ctx, func(ctx context.Context) error { // each reply has its own error
		replies := r.store.CommandEach(ctx, commands)
		for i := range batch {
			set, get := &replies[2*i], &replies[2*i+1]
			if posted[i].Err = set.Err; set.Err == nil {
				posted[i] = Posted{First: get.Value == values[i], Err: get.Err}
			}
		}
		return nil
	})
	return posted
}
