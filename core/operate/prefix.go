package operate

import (
	"context"
	"errors"

	"github.com/redis/go-redis/v9"

	"github.com/accesslimit/accesslimit/core/internal/rediskey"
)

// PrefixUnused looks at so many pages of keys on each server, with about perScan keys each.
const scans, perScan = 20, 1000

// errUsed ends a search that has found a key.
var errUsed = errors.New("a key lies under the prefix")

// PrefixUnused reports whether nothing was found under Options.Prefix in the Limiter's Redis. Then
// no service counts there: the prefix or the database is probably wrong. It asks for a key that
// each process keeps in Redis while it decides calls, and looks for others among the first 20,000
// keys of each server, which needs the right +scan. Without Redis, it returns false. The error is
// that of the Redis client.
func (o *Operator) PrefixUnused(ctx context.Context) (bool, error) {
	if err := o.made(); err != nil || o.parts.Client == nil {
		return false, err
	}
	ctx, cancel := context.WithTimeout(ctx, o.parts.Timeout)
	defer cancel()
	mark, err := o.parts.Redis.Command(ctx, "get", rediskey.Mark(o.parts.KeyHead, 0))
	if err != nil || mark != nil {
		return false, err
	}
	err = o.eachMaster(ctx, func(ctx context.Context, node redis.Cmdable) error {
		return findKey(ctx, node, o.parts.KeyHead+"*")
	})
	if errors.Is(err, errUsed) {
		return false, nil
	}
	return err == nil, err
}

// eachMaster calls do for each server that takes writes, with a client whose commands end with the
// context, whatever the options of the service's client are.
func (o *Operator) eachMaster(ctx context.Context, do func(context.Context, redis.Cmdable) error) error {
	each := func(ctx context.Context, node *redis.Client) error {
		bound := node.WithTimeout(o.parts.Timeout)
		bound.Options().ContextTimeoutEnabled = true
		return do(ctx, bound)
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

// findKey returns errUsed if it finds a key of the pattern.
func findKey(ctx context.Context, node redis.Cmdable, pattern string) error {
	cursor := uint64(0)
	for range scans {
		keys, next, err := node.Scan(ctx, cursor, pattern, perScan).Result()
		switch {
		case err != nil:
			return err
		case len(keys) > 0:
			return errUsed
		case next == 0:
			return nil
		}
		cursor = next
	}
	return nil
}
