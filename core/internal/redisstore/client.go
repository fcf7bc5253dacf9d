package redisstore

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/accesslimit/accesslimit/core/internal/panics"
	"github.com/redis/go-redis/v9"
)

// node runs the commands of one shard. A command returns by its context's deadline, and is sent
// once.
type node interface {
	// process runs one command. If the context ends first, the command is still under way and must
	// not be used again.
	process(ctx context.Context, cmd command) error
}

// pipelineNode is a node that can also run several commands in one trip.
type pipelineNode interface {
	node
	// processAll leaves each command's error in it, and is done with them when it returns. It
	// returns errBreakerOpen if the breaker prevented the trip, and otherwise nil. The commands are
	// of type command.
	processAll(ctx context.Context, cmds []redis.Cmder) error
	// noConnection returns the failure of a command whose time ended before it could be sent.
	noConnection() error
}

// redirectNode is a node of a cluster, where slots move.
type redirectNode interface {
	node
	// redirect runs a command where its slot is now, after a master refused it with this error
	// without running it. It returns as process does.
	redirect(ctx context.Context, cmd command, refusal error) error
}

// boundClient is the client of a single server. Its commands end with the context, whatever its
// owner configured.
type boundClient struct {
	*common
	byContext    *redis.Client // its reads end with the context, which costs the connection
	byTimeout    *redis.Client // its reads continue until the timeout, and keep the connection
	breaker      *breaker
	connectivity *connectivity
}

// ByContext returns a client on the same connections whose commands end with the context, whatever the
// owner of the client configured. Each read and each write also ends after the timeout. WithTimeout
// gives the client options of its own, so this changes nothing for their owner.
func ByContext(client *redis.Client, timeout time.Duration) *redis.Client {
	bound := client.WithTimeout(timeout)
	bound.Options().ContextTimeoutEnabled = true
	return bound
}

// newBoundClient returns the bound client of a server. Without it, a wait for a connection and the
// read that follows could take the timeout each.
func newBoundClient(client *redis.Client, b *breaker, c *common) boundClient {
	bound := boundClient{
		common: c, byContext: ByContext(client, c.timeout), byTimeout: client.WithTimeout(c.timeout), breaker: b,
		connectivity: &connectivity{client: client, common: c},
	}
	bound.byTimeout.Options().ContextTimeoutEnabled = false
	return bound
}

// process runs one command.
func (b boundClient) process(ctx context.Context, cmd command) error {
	return b.send(ctx, cmd, false)
}

// send runs one command. If asking is set, the slot is being moved to this server, and ASKING is
// sent first, without which the server would refuse the command.
func (b boundClient) send(ctx context.Context, cmd command, asking bool) error {
	cmd.state().written = false // it may have been written to the previous server
	if b.endsEarly(ctx) {
		// The breaker learns how the command ends, even if the caller has left.
		return runDetached(ctx, func() error { return b.trip(ctx, b.byTimeout, cmd, asking) })
	}
	return b.trip(ctx, b.byContext, cmd, asking)
}

// endsEarly reports whether a caller cannot wait for the timeout. Such a caller leaves at their own
// deadline, and the read goes on without them. Ending the read at that deadline would cost a
// connection each time (200 of 200 in a test), and callers choose their deadlines.
func (b boundClient) endsEarly(ctx context.Context) bool {
	deadline, ok := ctx.Deadline()
	return ok && time.Until(deadline) < mostOf(b.timeout)
}

// mostOf returns nine tenths of the timeout. A deadline at least that far away counts as the
// timeout. A shorter one is the caller's own, and its end says nothing about the server.
func mostOf(timeout time.Duration) time.Duration { return timeout * 9 / 10 }

// trip makes one round trip, unless the breaker is open.
func (b boundClient) trip(ctx context.Context, client *redis.Client, cmd command, asking bool) error {
	return b.breaker.run(func() error {
		if !asking {
			return b.connectivity.classify(ctx, cmd, b.call(func() error { return client.Process(ctx, cmd) }))
		}
		cmds := []redis.Cmder{&valueCommand{Cmd: redis.NewCmd(ctx, "asking")}, cmd}
		b.execPipeline(ctx, client, cmds)
		return b.connectivity.classify(ctx, cmd, cmp.Or(cmds[0].Err(), cmds[1].Err()))
	})
}

// processAll implements pipelineNode.
func (b boundClient) processAll(ctx context.Context, cmds []redis.Cmder) error {
	err := b.breaker.run(func() error {
		b.execPipeline(ctx, b.byContext, cmds)
		first, failed := cmds[0].(command), firstFailure(cmds)
		err := b.connectivity.classify(ctx, first, failed)
		if failed != nil && !first.state().written { // nor was any other
			setErrors(cmds, err)
		}
		return err
	})
	if err == errBreakerOpen {
		return err
	}
	return nil
}

// noConnection implements pipelineNode.
func (b boundClient) noConnection() error {
	return b.connectivity.noConnectionInTime(context.DeadlineExceeded)
}

// firstFailure returns the first error that is not an answer.
func firstFailure(cmds []redis.Cmder) error {
	for _, cmd := range cmds {
		if err := cmd.Err(); err != nil && !isAnswer(err) {
			return err
		}
	}
	return nil
}

// execPipeline sends commands together, and leaves their errors in them. If the server refuses a
// new connection, for example because the password is wrong, go-redis returns the error for the
// pipeline only: then no command was sent, and each gets that error. If go-redis panics, it is not
// known which commands have a reply, and each gets the panic.
func (c *common) execPipeline(ctx context.Context, client redis.UniversalClient, cmds []redis.Cmder) {
	pipe := client.Pipeline()
	_ = pipe.BatchProcess(ctx, cmds...)
	err := c.call(func() error {
		_, err := pipe.Exec(ctx)
		return err
	})
	if panics.Is(err) || err != nil && !slices.ContainsFunc(cmds, func(cmd redis.Cmder) bool { return cmd.Err() != nil }) {
		setErrors(cmds, err)
	}
}

func setErrors(cmds []redis.Cmder, err error) {
	for _, cmd := range cmds {
		cmd.SetErr(err)
	}
}

// detachedClient is a client whose reads do not end with the context. A goroutine waits for it, so
// that the caller need not.
type detachedClient struct {
	*common
	client redis.UniversalClient
}

func (d detachedClient) process(ctx context.Context, cmd command) error {
	return runDetached(ctx, func() error {
		return d.call(func() error { return d.client.Process(ctx, cmd) })
	})
}

// runDetached runs a function in a goroutine of its own, and waits for it as long as the context
// allows.
func runDetached(ctx context.Context, do func() error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	done := make(chan error, 1)
	go panics.Guard(func() { done <- do() }, func(err error) { done <- err })()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return unanswered{ctx.Err()}
	}
}

// unknownNode is a client of a type that we do not know.
type unknownNode struct{ detachedClient }

func (n unknownNode) process(ctx context.Context, cmd command) error {
	exposeKeys(cmd)
	return n.detachedClient.process(ctx, cmd)
}
