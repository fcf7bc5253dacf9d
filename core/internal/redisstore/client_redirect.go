package redisstore

import (
	"context"
	"errors"

	"github.com/redis/go-redis/v9"
)

// clusterNode is a master of a cluster. A command that it refuses because the slot has moved is
// sent where the slot is now, through that server's own bound client, so that the server's breaker
// and pool bound it.
//
// go-redis follows with a client that has neither. When a new master hung, a whole pipeline waited
// for the timeout, and following each command separately left a dial behind in two of five
// failovers. The calls of a pipeline are redirected one by one, so the others are not delayed.
type clusterNode struct {
	boundClient
	client *redis.Client // the cluster client's own for this master
	table  *shardTable
}

// maxHops is how often a command is redirected, as in go-redis.
const maxHops = 3

func (n clusterNode) process(ctx context.Context, cmd command) error {
	err := n.boundClient.process(ctx, cmd)
	if isSlotUnavailable(err) {
		return n.redirect(ctx, cmd, err)
	}
	return err
}

// redirect implements redirectNode. If the slot is split, it can only ask again later.
func (n clusterNode) redirect(ctx context.Context, cmd command, err error) error {
	at := n.client
	for hop := 0; hop < maxHops && isSlotUnavailable(err) && !isSlotSplit(err); hop++ {
		n.table.cluster.ReloadState(ctx)
		to, asking := n.nextServer(ctx, cmd, at, err)
		if to == nil && isRedirect(err) {
			return n.processByCluster(ctx, cmd)
		}
		if to == nil {
			return err
		}
		cmd.SetErr(nil)
		err = n.table.shardFor(to).node.(clusterNode).send(ctx, cmd, asking)
		if errors.Is(err, redis.ErrClosed) {
			// go-redis closed the client when the server left the cluster, and makes another.
			return n.processByCluster(ctx, cmd)
		}
		at = to
	}
	return err
}

// nextServer returns the server to ask after a refusal, or nil if it is not known, and whether it
// must be asked with ASKING.
func (n clusterNode) nextServer(ctx context.Context, cmd command, at *redis.Client, refusal error) (to *redis.Client, asking bool) {
	if addr, ok := redis.IsMovedError(refusal); ok {
		return n.table.serverAt(addr), false
	}
	if addr, ok := redis.IsAskError(refusal); ok {
		return n.table.serverAt(addr), true
	}
	return n.otherMaster(ctx, cmd, at, redis.IsReadOnlyError(refusal)), false
}

// otherMaster returns the master of the command's slot if it is not the given server. If that
// server has become a replica, it waits for the slots to be loaded: then there is another master,
// and the cluster will soon know it.
func (n clusterNode) otherMaster(ctx context.Context, cmd command, than *redis.Client, waits bool) *redis.Client {
	key := firstKey(cmd)
	for b := (backoff{}); ; n.table.cluster.ReloadState(ctx) {
		master, err := n.table.cluster.MasterForKey(ctx, key)
		switch {
		case err != nil:
			return nil
		case master != than:
			return master
		case !waits || !b.sleep(ctx):
			return nil
		}
	}
}

// processByCluster sends a command through the cluster's client, which follows every redirection
// and so gets to know new servers. From then on, a new server is found by its address. The few
// calls before that have no breaker, and their dials may continue for go-redis's DialTimeout after
// their callers have left.
func (n clusterNode) processByCluster(ctx context.Context, cmd command) error {
	exposeKeys(cmd)
	return detachedClient{n.common, n.table.cluster}.process(ctx, cmd)
}

// firstKey returns the key that determines the slot of a command.
func firstKey(cmd redis.Cmder) string {
	args := cmd.Args()
	at := 1 // DEL
	if name := cmd.Name(); name == "eval" || name == "evalsha" {
		at = 3
	}
	if key, ok := args[at].(*string); ok {
		return *key
	}
	return args[at].(string)
}

// exposeKeys prepares a command for a client that finds the server by the key, because such a
// client cannot read a key behind a pointer.
func exposeKeys(cmd redis.Cmder) {
	cmd.SetErr(nil)
	for i, arg := range cmd.Args() {
		if key, ok := arg.(*string); ok {
			cmd.Args()[i] = *key
		}
	}
}
