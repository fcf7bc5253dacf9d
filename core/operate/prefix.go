package operate

import (
	"context"
	"sync/atomic"

	"github.com/redis/go-redis/v9"

	"github.com/accesslimit/accesslimit/core/internal/rediskey"
	"github.com/accesslimit/accesslimit/core/internal/redisstore"
)

// PrefixUnused looks at so many pages of keys on each server, with about perScan keys each.
const scans, perScan = 20, 1000

// PrefixUnused reports whether nothing was found under Options.Prefix in the Limiter's Redis. Then
// no service counts there: the prefix or the database is probably wrong. It asks for a key that
// each process keeps in Redis while it decides calls, and looks for others among the first 20,000
// keys of each server, which needs the right +scan. Without Redis, it returns false.
//
// Errors are those of [core.Counter].
func (o *Operator) PrefixUnused(ctx context.Context) (bool, error) {
	if err := o.made(); err != nil || o.parts.Redis == nil {
		return false, err
	}
	var used atomic.Bool
	err := o.parts.Redis.Operate(ctx, func(ctx context.Context) error {
		mark, err := o.parts.Redis.Command(ctx, "get", rediskey.Mark(o.parts.KeyHead, 0))
		if err != nil || mark != nil {
			used.Store(mark != nil)
			return err
		}
		return o.eachMaster(ctx, func(ctx context.Context, node redis.Cmdable) error {
			found, err := hasKey(ctx, node, o.parts.KeyHead+"*")
			if found {
				used.Store(true)
			}
			return err
		})
	})
	if err != nil {
		return false, o.front.Failed("prefix", err)
	}
	return !used.Load(), nil
}

// eachMaster calls do for each server that takes writes, with a client whose commands end with the
// context, whatever the options of the service's client are.
func (o *Operator) eachMaster(ctx context.Context, do func(context.Context, redis.Cmdable) error) error {
	each := func(ctx context.Context, node *redis.Client) error {
		return do(ctx, redisstore.ByContext(node, o.parts.Timeout))
	}
	switch client := o.parts.Client.(type) {
	case *redis.ClusterClient:
		return client.ForEachMaster(ctx, each)
	case *redis.Ring:
		return client.ForEachShard(ctx, each)
	case *redis.Client:
		return each(ctx, client)
	default:
		return do(ctx, client)
	}
}

// hasKey reports whether it finds a key of the pattern.
func hasKey(ctx context.Context, node redis.Cmdable, pattern string) (found bool, err error) {
	cursor := uint64(0)
	for range scans {
		keys, next, err := node.Scan(ctx, cursor, pattern, perScan).Result()
		if err != nil || len(keys) > 0 || next == 0 {
			return len(keys) > 0, err
		}
		cursor = next
	}
	return false, nil
}
