package redisstore

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// node is what one shard's commands run on. A command returns by its context's deadline and is sent once.
type node interface {
	process(ctx context.Context, cmd *redis.Cmd) error
}

// once keeps go-redis from sending a command again after a timeout or a lost connection: the first may have charged, and
// with its defaults it would charge up to four times.
type once struct{ *redis.Cmd }

// NoRetry implements redis.Cmder.
func (once) NoRetry() bool { return true }

// boundClient is a single server's client whose commands end by the context, whatever its owner configured.
type boundClient struct {
	timeout time.Duration
	prompt  *redis.Client // its reads end with the context, which costs the connection
	patient *redis.Client // its reads go on for the timeout, and keep the connection
}

// process leaves a read that Redis owes us by the timeout, and a caller who cannot wait that long by their own deadline. The
// latter's read goes on without them: callers choose their deadlines, and with each they could cost us a connection.
func (b boundClient) process(ctx context.Context, cmd *redis.Cmd) error {
	if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) < b.timeout*9/10 {
		return heldClient{b.patient}.process(ctx, cmd)
	}
	return b.prompt.Process(ctx, once{cmd})
}

// boundClients makes the bound client of each server once. Servers of a cluster come and go, so the table is thrown away
// when it has grown past any cluster's size.
type boundClients struct {
	timeout time.Duration
	mu      sync.RWMutex
	made    map[*redis.Client]boundClient
}

const maxBoundClients = 1024

func (b *boundClients) of(client *redis.Client) boundClient {
	b.mu.RLock()
	bound, ok := b.made[client]
	b.mu.RUnlock()
	if ok {
		return bound
	}
	bound = boundClient{timeout: b.timeout, prompt: client.WithTimeout(b.timeout), patient: client.WithTimeout(b.timeout)}
	// WithTimeout gives each client options of its own, so this changes nothing for their owner. Without it, a wait for a
	// connection and the read that follows could take the timeout each.
	bound.prompt.Options().ContextTimeoutEnabled = true
	bound.patient.Options().ContextTimeoutEnabled = false
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.made == nil || len(b.made) >= maxBoundClients {
		b.made = make(map[*redis.Client]boundClient)
	}
	b.made[client] = bound
	return bound
}

// heldClient is a client whose reads do not end with the context: a goroutine waits for it, so that the caller need not.
type heldClient struct{ client redis.UniversalClient }

func (h heldClient) process(ctx context.Context, cmd *redis.Cmd) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	done := make(chan error, 1)
	go func() { done <- h.client.Process(ctx, once{cmd}) }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// clusterNode asks the master itself, and follows a moved slot through the cluster's client, which knows the way and learns it.
type clusterNode struct {
	master  boundClient
	cluster *redis.ClusterClient
}

func (n clusterNode) process(ctx context.Context, cmd *redis.Cmd) error {
	err := n.master.process(ctx, cmd)
	var answer redis.Error
	switch {
	case movedAway(err):
		cmd.SetErr(nil)
		return heldClient{n.cluster}.process(ctx, cmd)
	case err != nil && !errors.As(err, &answer) && !errors.Is(err, context.Canceled):
		n.cluster.ReloadState(ctx) // in the background: a replica may have taken the place of a master that is gone
	}
	return err
}

// movedAway says whether the server refused the command unseen, because the slot is elsewhere or on its way.
func movedAway(err error) bool {
	for _, prefix := range [...]string{"MOVED ", "ASK ", "TRYAGAIN", "CLUSTERDOWN", "READONLY"} {
		if redis.HasErrorPrefix(err, prefix) {
			return true
		}
	}
	return false
}
