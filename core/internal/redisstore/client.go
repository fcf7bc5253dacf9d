package redisstore

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"
)

// node is what one shard's commands run on. A command returns by its context's deadline and is sent once.
type node interface {
	// process runs one command. When the context ends first, the command is still under way and
	// must not be used again.
	process(ctx context.Context, cmd command) error
}

// pipeNode is a node that also runs several commands in one trip.
type pipelineNode interface {
	node
	// pipe leaves each command's error in it, and is done with them when it returns. It returns
	// errOpen if the breaker kept them. The commands are of type onceCmd.
	processAll(ctx context.Context, cmds []redis.Cmder) error
	// unsent returns the failure of a command whose time ended before it could be sent.
	noConnection() error
}

// followNode is a node of a cluster, where slots move.
type redirectNode interface {
	node
	// follow runs a command where its slot is now, after a master refused it unseen with such an
	// error. It reports process's.
	redirect(ctx context.Context, cmd command, refusal error) error
}

// boundClient is a single server's client whose commands end by the context, whatever its owner
// configured.
type boundClient struct {
	timeout      time.Duration
	byContext    *redis.Client // its reads end with the context, which costs the connection
	byTimeout    *redis.Client // its reads go on for the timeout, and keep the connection
	breaker      *breaker
	connectivity *connectivity
}

// process runs one command.
func (b boundClient) process(ctx context.Context, cmd command) error {
	cmd.state().written = false // it may have been written to the server that it comes from
	if b.endsEarly(ctx) {
		return runDetached(ctx, func() error { // the breaker hears how it ends, whoever has left
			return b.breaker.run(func() error { return b.connectivity.classify(ctx, cmd, b.byTimeout.Process(ctx, cmd)) })
		})
	}
	return b.breaker.run(func() error { return b.connectivity.classify(ctx, cmd, b.byContext.Process(ctx, cmd)) })
}

// isHurried reports whether a caller cannot wait for the timeout. Such a caller leaves at their own
// deadline, and the read goes on without them: ended with the read, each would cost a connection,
// and callers choose their deadlines.
func (b boundClient) endsEarly(ctx context.Context) bool {
	deadline, ok := ctx.Deadline()
	return ok && time.Until(deadline) < mostOf(b.timeout)
}

// ask runs a command for a slot that is on its way to this server, which refuses it without ASKING.
func (b boundClient) processAsking(ctx context.Context, cmd command) error {
	cmd.state().written = false
	cmds := []redis.Cmder{&valueCommand{Cmd: redis.NewCmd(ctx, "asking")}, cmd}
	trip := func(client *redis.Client) error {
		execPipeline(ctx, client, cmds)
		return b.connectivity.classify(ctx, cmd, cmp.Or(cmds[0].Err(), cmds[1].Err()))
	}
	if b.endsEarly(ctx) {
		return runDetached(ctx, func() error { return b.breaker.run(func() error { return trip(b.byTimeout) }) })
	}
	return b.breaker.run(func() error { return trip(b.byContext) })
}

// pipe runs several commands in one trip.
func (b boundClient) processAll(ctx context.Context, cmds []redis.Cmder) error {
	err := b.breaker.run(func() error {
		execPipeline(ctx, b.byContext, cmds)
		first := firstFailure(cmds)
		err := b.connectivity.classify(ctx, cmds[0].(command), first)
		if first != nil && !cmds[0].(command).state().written { // nor was any other
			for _, cmd := range cmds {
				cmd.SetErr(err)
			}
		}
		return err
	})
	if err == errBreakerOpen {
		return err
	}
	return nil
}

// unsent implements pipeNode.
func (b boundClient) noConnection() error {
	return b.connectivity.noConnectionInTime(context.DeadlineExceeded)
}

// failed is what kept the server from answering commands.
func firstFailure(cmds []redis.Cmder) error {
	for _, cmd := range cmds {
		if err := cmd.Err(); err != nil && !isAnswer(err) {
			return err
		}
	}
	return nil
}

// nearly returns the time from which on a deadline counts as the timeout. A caller with less leaves
// by a deadline of their own, which says nothing about the server.
func mostOf(timeout time.Duration) time.Duration { return timeout * 9 / 10 }

// execute sends commands together, and leaves their errors in them. If the server refuses a new
// connection, for example because the password is wrong, go-redis returns the error for the
// pipeline only: then no command was sent, and each gets that error.
func execPipeline(ctx context.Context, client redis.UniversalClient, cmds []redis.Cmder) {
	pipe := client.Pipeline()
	_ = pipe.BatchProcess(ctx, cmds...)
	_, err := pipe.Exec(ctx)
	if err == nil || slices.ContainsFunc(cmds, func(cmd redis.Cmder) bool { return cmd.Err() != nil }) {
		return
	}
	for _, cmd := range cmds {
		cmd.SetErr(err)
	}
}

// bind makes the bound client of a server. WithTimeout gives each client options of its own, so
// this changes nothing for their owner. Without it, a wait for a connection and the read that
// follows could take the timeout each.
func newBoundClient(client *redis.Client, br *breaker, c *common) boundClient {
	b := boundClient{
		timeout: c.timeout, byContext: client.WithTimeout(c.timeout), byTimeout: client.WithTimeout(c.timeout), breaker: br,
		connectivity: &connectivity{client: client, common: c},
	}
	b.byContext.Options().ContextTimeoutEnabled = true
	b.byTimeout.Options().ContextTimeoutEnabled = false
	return b
}

// heldClient is a client whose reads do not end with the context: a goroutine waits for it, so that the caller need not.
type detachedClient struct{ client redis.UniversalClient }

func (h detachedClient) process(ctx context.Context, cmd command) error {
	return runDetached(ctx, func() error { return h.client.Process(ctx, cmd) })
}

// held waits for something as long as the context allows.
func runDetached(ctx context.Context, do func() error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	done := make(chan error, 1)
	go func() { done <- do() }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return unanswered{ctx.Err()}
	}
}

// anyNode is a client of a type that we do not know.
type unknownNode struct{ detachedClient }

func (n unknownNode) process(ctx context.Context, cmd command) error {
	exposeKeys(cmd)
	return n.detachedClient.process(ctx, cmd)
}
