package redisstore

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// node is what one shard's commands run on. A command returns by its context's deadline and is sent once.
type node interface {
	// process runs one command.
	process(ctx context.Context, cmd redis.Cmder) error
	// pipe runs several in one trip, each with an error of its own. An error of pipe's says that they were not sent, errOpen; or
	// that they are still on their way when the context has ended: then they are nobody's to look at.
	pipe(ctx context.Context, cmds []redis.Cmder) error
}

// once keeps go-redis from sending a command, or the pipeline that it is in, again after a timeout or a lost connection: the
// first may have charged, and with its defaults it would charge up to four times.
type (
	once       struct{ *redis.Cmd }
	onceString struct{ *redis.StringCmd }
)

// NoRetry implements redis.Cmder.
func (once) NoRetry() bool { return true }

// NoRetry implements redis.Cmder.
func (onceString) NoRetry() bool { return true }

// boundClient is a single server's client whose commands end by the context, whatever its owner configured.
type boundClient struct {
	timeout time.Duration
	prompt  *redis.Client // its reads end with the context, which costs the connection
	patient *redis.Client // its reads go on for the timeout, and keep the connection
	breaker *breaker
}

// process leaves a read that Redis owes us by the timeout, and a caller who cannot wait that long by their own deadline. The
// latter's read goes on without them: callers choose their deadlines, and with each they could cost us a connection.
func (b boundClient) process(ctx context.Context, cmd redis.Cmder) error {
	if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) < nearly(b.timeout) {
		return held(ctx, func() error { // the breaker hears how it ends, whoever has left
			return b.breaker.run(func() error { return b.patient.Process(ctx, cmd) })
		})
	}
	return b.breaker.run(func() error { return b.prompt.Process(ctx, cmd) })
}

func (b boundClient) pipe(ctx context.Context, cmds []redis.Cmder) error {
	err := b.breaker.run(func() error {
		execute(ctx, b.prompt, cmds)
		return failed(cmds)
	})
	if err == errOpen {
		return err
	}
	return nil
}

// failed is what kept the server from answering commands.
func failed(cmds []redis.Cmder) error {
	for _, cmd := range cmds {
		if err := cmd.Err(); err != nil && !answers(err) {
			return err
		}
	}
	return nil
}

// nearly is the time from which on a deadline is as good as the timeout: who has less leaves by a deadline of their own, and so says nothing
// about the server.
func nearly(timeout time.Duration) time.Duration { return timeout * 9 / 10 }

// execute sends commands together. Their errors are in them. What a server says against a new connection, as that the password is wrong,
// go-redis tells of the pipeline alone: then no command was sent, and that is each one's error.
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

// bind makes the bound client of a server. WithTimeout gives each client options of its own, so this changes nothing for their
// owner. Without it, a wait for a connection and the read that follows could take the timeout each.
func bind(client *redis.Client, timeout time.Duration, br *breaker) boundClient {
	b := boundClient{timeout: timeout, prompt: client.WithTimeout(timeout), patient: client.WithTimeout(timeout), breaker: br}
	b.prompt.Options().ContextTimeoutEnabled = true
	b.patient.Options().ContextTimeoutEnabled = false
	return b
}

// heldClient is a client whose reads do not end with the context: a goroutine waits for it, so that the caller need not.
type heldClient struct{ client redis.UniversalClient }

func (h heldClient) process(ctx context.Context, cmd redis.Cmder) error {
	return held(ctx, func() error { return h.client.Process(ctx, cmd) })
}

func (h heldClient) pipe(ctx context.Context, cmds []redis.Cmder) error {
	cmds = slices.Clone(cmds) // it may outlive the caller
	return held(ctx, func() error {
		execute(ctx, h.client, cmds)
		return nil
	})
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

func (n anyNode) process(ctx context.Context, cmd redis.Cmder) error {
	findable(cmd)
	return n.heldClient.process(ctx, cmd)
}

// clusterNode asks the master itself, and follows a moved slot through the cluster's client, which knows the way and learns it.
type clusterNode struct {
	master  node
	cluster *redis.ClusterClient
}

func (n clusterNode) process(ctx context.Context, cmd redis.Cmder) error {
	err := n.master.process(ctx, cmd)
	if movedAway(err) {
		return n.follow(ctx, cmd)
	}
	n.reloadAfter(ctx, err)
	return err
}

func (n clusterNode) pipe(ctx context.Context, cmds []redis.Cmder) error {
	if err := n.master.pipe(ctx, cmds); err != nil {
		n.reloadAfter(ctx, err)
		return err
	}
	var moved []redis.Cmder
	for _, cmd := range cmds {
		if movedAway(cmd.Err()) {
			moved = append(moved, cmd)
		}
	}
	n.reloadAfter(ctx, cmds[0].Err()) // a lost connection is every command's error, or that of the last
	n.reloadAfter(ctx, cmds[len(cmds)-1].Err())
	if len(moved) == 0 {
		return nil
	}
	return held(ctx, func() error {
		var others sync.WaitGroup
		for _, cmd := range moved {
			others.Go(func() {
				findable(cmd)
				_ = n.cluster.Process(ctx, cmd)
			})
		}
		others.Wait()
		return nil
	})
}

// follow sends a command where its slot is now.
func (n clusterNode) follow(ctx context.Context, cmd redis.Cmder) error {
	findable(cmd)
	return heldClient{n.cluster}.process(ctx, cmd)
}

// findable makes a command ready for a client that finds the way by the key: it does not look behind a pointer.
func findable(cmd redis.Cmder) {
	cmd.SetErr(nil)
	for i, arg := range cmd.Args() {
		if key, ok := arg.(*string); ok {
			cmd.Args()[i] = *key
		}
	}
}

// reloadAfter looks for the masters anew, in the background, when one did not answer: a replica may have taken its place.
func (n clusterNode) reloadAfter(ctx context.Context, err error) {
	var answer redis.Error
	if err != nil && err != errOpen && !errors.As(err, &answer) && !errors.Is(err, context.Canceled) {
		n.cluster.ReloadState(ctx)
	}
}
