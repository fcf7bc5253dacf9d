package redisstore

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/accesslimit/accesslimit/core/internal/failure"
)

// connectivity holds what is known about the connections to a server. It distinguishes a command
// that could not be sent from one that got no answer. It also knows why a command could not be
// sent: because the pool was used up, or because no connection could be set up. go-redis hides the
// reason and tries again until the call's time is over.
type connectivity struct {
	client             *redis.Client // the owner's
	common             *common
	healthy            atomic.Bool           // an answer came, and since then every connection could be set up
	cause              atomic.Pointer[error] // why no connection can be set up, as a probe found
	answeredSinceProbe atomic.Bool
	lastProbe          atomic.Int64 // when it began, by time.Time's UnixNano; 0 if there was none
}

// probeEvery is the shortest time between two probes while the server does not answer. probeAgain
// is the shortest time if it has answered since the last probe. A server that answers on some
// connections but accepts no more must not be flooded with new ones.
const probeEvery, probeAgain = 10 * time.Second, time.Second

// classify returns what the error of a command means.
func (c *connectivity) classify(ctx context.Context, cmd command, err error) error {
	if err == nil {
		c.answered()
		return nil
	}
	var reply redis.Error // declared here, because the declaration allocates
	switch {
	case errors.Is(err, redis.ErrClosed):
		return err
	case errors.As(err, &reply):
		c.answered()
		return err
	case cmd.state().written && !hadNoConnection(err):
		return err
	case isTimeout(err) && failure.CallersEnd(ctx) != nil, isPoolError(err):
		return c.noConnectionInTime(err)
	}
	c.connectFailed()
	if cause := c.cause.Load(); cause != nil && isHangUp(err) {
		err = *cause
	}
	return &unreached{cause: fmt.Errorf("%w: %w", errNoSetUp, err)}
}

// answered notes that the server answered.
func (c *connectivity) answered() {
	if !c.healthy.Load() {
		c.healthy.Store(true)
		c.cause.Store(nil)
		c.answeredSinceProbe.Store(true)
	}
}

// noConnectionInTime returns the failure of a command that was not sent in time.
func (c *connectivity) noConnectionInTime(err error) error {
	size := c.client.Options().PoolSize
	if errors.Is(err, redis.ErrPoolExhausted) || int(c.client.PoolStats().TotalConns) >= size && c.healthy.Load() {
		return fmt.Errorf("all %d connections of the client's pool were in use: %w", size, redis.ErrPoolTimeout)
	}
	c.connectFailed()
	if cause := c.cause.Load(); cause != nil {
		return &unreached{cause: fmt.Errorf("%w: %w", errNoSetUp, *cause), ended: true}
	}
	return &unreached{cause: errNoSetUp, ended: true}
}

// connectFailed notes that a connection could not be set up, and starts a probe of the cause.
func (c *connectivity) connectFailed() {
	c.healthy.Store(false)
	now, last, pause := time.Now().UnixNano(), c.lastProbe.Load(), probeEvery
	if c.answeredSinceProbe.Load() {
		pause = probeAgain
	}
	if now-last < int64(pause) || !c.lastProbe.CompareAndSwap(last, now) {
		return
	}
	c.answeredSinceProbe.Store(false)
	c.common.inBackground(c.probe)
}

// probe finds out why no connection can be set up, and reports it.
func (c *connectivity) probe() {
	options := c.client.Options()
	cause := probe{options, c.common}.findCause(c.common.closing)
	if cause == nil || c.healthy.Load() || c.common.closing.Err() != nil {
		return
	}
	c.cause.Store(&cause)
	c.common.listener.Unreachable(options.Addr, cause)
}
