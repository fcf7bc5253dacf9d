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
	process(ctx context.Context, cmd onceCmd) error
}

// pipeNode is a node that also runs several commands in one trip.
type pipeNode interface {
	node
	// pipe leaves each command's error in it, and is done with them when it returns. It returns
	// errOpen if the breaker kept them. The commands are of type onceCmd.
	pipe(ctx context.Context, cmds []redis.Cmder) error
	// unsent returns the failure of a command whose time ended before it could be sent.
	unsent() error
}

// followNode is a node of a cluster, where slots move.
type followNode interface {
	node
	// follow runs a command where its slot is now, after a master refused it unseen with such an
	// error. It reports process's.
	follow(ctx context.Context, cmd onceCmd, refusal error) error
}

// boundClient is a single server's client whose commands end by the context, whatever its owner
// configured.
type boundClient struct {
	timeout time.Duration
	prompt  *redis.Client // its reads end with the context, which costs the connection
	patient *redis.Client // its reads go on for the timeout, and keep the connection
	breaker *breaker
	reach   *reach
}

// process runs one command.
func (b boundClient) process(ctx context.Context, cmd onceCmd) error {
	cmd.sending().written = false // it may have been written to the server that it comes from
	if b.isHurried(ctx) {
		return held(ctx, func() error { // the breaker hears how it ends, whoever has left
			return b.breaker.run(func() error { return b.reach.outcome(ctx, cmd, b.patient.Process(ctx, cmd)) })
		})
	}
	return b.breaker.run(func() error { return b.reach.outcome(ctx, cmd, b.prompt.Process(ctx, cmd)) })
}

// isHurried reports whether a caller cannot wait for the timeout. Such a caller leaves at their own
// deadline, and the read goes on without them: ended with the read, each would cost a connection,
// and callers choose their deadlines.
func (b boundClient) isHurried(ctx context.Context) bool {
	deadline, ok := ctx.Deadline()
	return ok && time.Until(deadline) < nearly(b.timeout)
}

// ask runs a command for a slot that is on its way to this server, which refuses it without ASKING.
func (b boundClient) ask(ctx context.Context, cmd onceCmd) error {
	cmd.sending().written = false
	cmds := []redis.Cmder{&once{Cmd: redis.NewCmd(ctx, "asking")}, cmd}
	trip := func(client *redis.Client) error {
		execute(ctx, client, cmds)
		return b.reach.outcome(ctx, cmd, cmp.Or(cmds[0].Err(), cmds[1].Err()))
	}
	if b.isHurried(ctx) {
		return held(ctx, func() error { return b.breaker.run(func() error { return trip(b.patient) }) })
	}
	return b.breaker.run(func() error { return trip(b.prompt) })
}

// pipe runs several commands in one trip.
func (b boundClient) pipe(ctx context.Context, cmds []redis.Cmder) error {
	err := b.breaker.run(func() error {
		execute(ctx, b.prompt, cmds)
		first := failed(cmds)
		err := b.reach.outcome(ctx, cmds[0].(onceCmd), first)
		if first != nil && !cmds[0].(onceCmd).sending().written { // nor was any other
			for _, cmd := range cmds {
				cmd.SetErr(err)
			}
		}
		return err
	})
	if err == errOpen {
		return err
	}
	return nil
}

// unsent implements pipeNode.
func (b boundClient) unsent() error { return b.reach.inTime(context.DeadlineExceeded) }

// failed is what kept the server from answering commands.
func failed(cmds []redis.Cmder) error {
	for _, cmd := range cmds {
		if err := cmd.Err(); err != nil && !answers(err) {
			return err
		}
	}
	return nil
}

// nearly returns the time from which on a deadline counts as the timeout. A caller with less leaves
// by a deadline of their own, which says nothing about the server.
func nearly(timeout time.Duration) time.Duration { return timeout * 9 / 10 }

// execute sends commands together, and leaves their errors in them. If the server refuses a new
// connection, for example because the password is wrong, go-redis returns the error for the
// pipeline only: then no command was sent, and each gets that error.
func execute(ctx context.Context, client redis.UniversalClient, cmds []redis.Cmder) {
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
func bind(client *redis.Client, br *breaker, c *common) boundClient {
	b := boundClient{
		timeout: c.timeout, prompt: client.WithTimeout(c.timeout), patient: client.WithTimeout(c.timeout), breaker: br,
		reach: &reach{client: client, all: c},
	}
	b.prompt.Options().ContextTimeoutEnabled = true
	b.patient.Options().ContextTimeoutEnabled = false
	return b
}

// heldClient is a client whose reads do not end with the context: a goroutine waits for it, so that the caller need not.
type heldClient struct{ client redis.UniversalClient }

func (h heldClient) process(ctx context.Context, cmd onceCmd) error {
	return held(ctx, func() error { return h.client.Process(ctx, cmd) })
}

// held waits for something as long as the context allows.
func held(ctx context.Context, do func() error) error {
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
type anyNode struct{ heldClient }

func (n anyNode) process(ctx context.Context, cmd onceCmd) error {
	findable(cmd)
	return n.heldClient.process(ctx, cmd)
}
