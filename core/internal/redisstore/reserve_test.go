package redisstore_test

import (
	"context"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
)

// A reservation is not sent if its caller leaves before there is a connection for it.
func TestAReservationOfACallerWhoHasLeftIsNotSent(t *testing.T) {
	server, client := startOne(t, func(o *redis.Options) { o.PoolSize = 1 })
	s, c := newStore(t, client, patient), counter("alice", limits(t, 100)["bucket"])
	free := holdOnlyConnection(t, server, client)
	ctx, leave := context.WithCancel(context.Background())
	verdict := make(chan algorithm.Verdict)
	go func() { verdict <- s.ask(ctx, algorithm.InTurn, c)[0] }()
	leave()
	free()
	if v := <-verdict; v.Ended != context.Canceled || v.Err != nil {
		t.Errorf("%+v, want the caller's end", v)
	}
	if left := newStore(t, server.Client(t), patient).left(t, c); left != 100 {
		t.Errorf("%d of 100 permits are left", left)
	}
}
