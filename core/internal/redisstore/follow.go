package redisstore

import (
	"context"
	"errors"
	"net"
	"strings"

	"github.com/redis/go-redis/v9"
)

// clusterNode is a master of a cluster. A command that it refuses because the slot has moved is
// sent where the slot is now, through that server's own bound client: with its breaker, and with
// nothing left behind that its pool does not bound.
type clusterNode struct {
	boundClient
	client *redis.Client // the cluster client's own for this master
	shards *shards
}

// maxHops is how often a command is sent on, as in go-redis.
const maxHops = 3

func (n clusterNode) process(ctx context.Context, cmd onceCmd) error {
	err := n.boundClient.process(ctx, cmd)
	if movedAway(err) {
		return n.follow(ctx, cmd, err)
	}
	return err
}

// follow implements followNode. Where counters are torn apart nothing can be done but to ask again
// later.
func (n clusterNode) follow(ctx context.Context, cmd onceCmd, err error) error {
	at := n.client
	for hop := 0; hop < maxHops && movedAway(err) && !torn(err); hop++ {
		n.shards.cluster.ReloadState(ctx)
		to, asking := n.whereTo(ctx, cmd, at, err)
		if to == nil && elsewhere(err) {
			return n.introduce(ctx, cmd)
		}
		if to == nil {
			return err
		}
		cmd.SetErr(nil)
		bound := n.shards.of(to).node.(clusterNode).boundClient
		if asking {
			err = bound.ask(ctx, cmd)
		} else {
			err = bound.process(ctx, cmd)
		}
		if errors.Is(err, redis.ErrClosed) {
			// go-redis closed the client when the server left the cluster, and makes another.
			return n.introduce(ctx, cmd)
		}
		at = to
	}
	return err
}

// whereTo returns the server to ask after a refusal, or nil if it is not known, and whether it must
// be asked with ASKING.
func (n clusterNode) whereTo(ctx context.Context, cmd onceCmd, at *redis.Client, refusal error) (to *redis.Client, asking bool) {
	if addr, ok := redis.IsMovedError(refusal); ok {
		return n.shards.at(addr), false
	}
	if addr, ok := redis.IsAskError(refusal); ok {
		return n.shards.at(addr), true
	}
	return n.otherMaster(ctx, cmd, at, redis.IsReadOnlyError(refusal)), false
}

// otherMaster returns the master of the command's slot if it is not the given server. If that
// server has become a replica, it waits for the slots to be loaded: then there is another master,
// and the cluster will soon know it.
func (n clusterNode) otherMaster(ctx context.Context, cmd onceCmd, than *redis.Client, waits bool) *redis.Client {
	key := firstKey(cmd)
	for p := (patience{}); ; n.shards.cluster.ReloadState(ctx) {
		master, err := n.shards.cluster.MasterForKey(ctx, key)
		switch {
		case err != nil:
			return nil
		case master != than:
			return master
		case !waits || !p.wait(ctx):
			return nil
		}
	}
}

// introduce sends a command through the cluster's client, which goes wherever a reply sends it, and
// so comes to know a server that it has never heard of. From then on that server is found by its
// address. The few calls that come before that share no breaker, and their dials may go on for
// go-redis's DialTimeout after their callers have left.
func (n clusterNode) introduce(ctx context.Context, cmd onceCmd) error {
	findable(cmd)
	return heldClient{n.shards.cluster}.process(ctx, cmd)
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

// findable prepares a command for a client that finds the server by the key: such a client cannot
// read a key behind a pointer.
func findable(cmd redis.Cmder) {
	cmd.SetErr(nil)
	for i, arg := range cmd.Args() {
		if key, ok := arg.(*string); ok {
			cmd.Args()[i] = *key
		}
	}
}

// meet stores, by its address, a server that go-redis has made a client for.
func (s *shards) meet(client *redis.Client) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.met == nil || len(s.met) >= maxShards {
		s.met = make(map[string]*redis.Client)
	}
	s.met[client.Options().Addr] = client
}

// at returns the client of the server at an address that a reply names, or nil if it is not known.
func (s *shards) at(addr string) *redis.Client {
	if end := strings.LastIndexByte(addr, ':'); end >= 0 { // an IPv6 address comes without brackets
		addr = net.JoinHostPort(strings.Trim(addr[:end], "[]"), addr[end+1:])
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.met[addr]
}
