package redisstore

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/accesslimit/accesslimit/core/internal/failure"
)

// reach holds what is known about the connections to a server. It distinguishes a command that
// could not be sent from one that got no answer, and knows why it could not: because the pool was
// used up, or because no connection could be set up. go-redis hides that until the call's time is
// over, while it tries again.
type connectivity struct {
	client             *redis.Client // the owner's
	common             *common
	healthy            atomic.Bool           // an answer came, and since then every connection could be set up
	cause              atomic.Pointer[error] // what keeps connections from being set up, as a probe found
	answeredSinceProbe atomic.Bool           // an answer came since the last probe
	lastProbe          atomic.Int64          // when a probe began last, by time.Time's UnixNano; 0: never
}

// probeEvery is the shortest time between two probes while the server does not answer. probeAgain
// is that time after it has answered since the last probe. A server that answers on some
// connections and accepts no others must not be flooded with more.
const probeEvery, probeAgain = 10 * time.Second, time.Second

// errNoSetUp is the reason why a command was not sent if nothing more is known.
var errNoSetUp = errors.New("no connection could be set up")

// outcome returns what the error of a command means.
func (r *connectivity) classify(ctx context.Context, cmd command, err error) error {
	if err == nil {
		r.answered()
		return nil
	}
	var reply redis.Error // here, because it is allocated where it is declared
	switch {
	case errors.Is(err, redis.ErrClosed):
		return err
	case errors.As(err, &reply):
		r.answered()
		return err
	case cmd.state().written && !hadNoConnection(err):
		return err
	case isTimeout(err) && failure.CallersEnd(ctx) != nil, errors.Is(err, redis.ErrPoolTimeout), errors.Is(err, redis.ErrPoolExhausted):
		return r.noConnectionInTime(err)
	}
	r.connectFailed()
	if why := r.cause.Load(); why != nil && isHangUp(err) {
		err = *why
	}
	return &unreached{cause: fmt.Errorf("%w: %w", errNoSetUp, err)}
}

// answers notes that the server answers.
func (r *connectivity) answered() {
	if !r.healthy.Load() {
		r.healthy.Store(true)
		r.cause.Store(nil)
		r.answeredSinceProbe.Store(true)
	}
}

// inTime returns the failure of a command that was not sent in time.
func (r *connectivity) noConnectionInTime(err error) error {
	size := r.client.Options().PoolSize
	if errors.Is(err, redis.ErrPoolExhausted) || int(r.client.PoolStats().TotalConns) >= size && r.healthy.Load() {
		return fmt.Errorf("all %d connections of the client's pool were in use: %w", size, redis.ErrPoolTimeout)
	}
	r.connectFailed()
	if why := r.cause.Load(); why != nil {
		return &unreached{cause: fmt.Errorf("%w: %w", errNoSetUp, *why), ended: true}
	}
	return &unreached{cause: errNoSetUp, ended: true}
}

// fails notes that a connection could not be set up, and finds out why.
func (r *connectivity) connectFailed() {
	r.healthy.Store(false)
	now, last, pause := time.Now().UnixNano(), r.lastProbe.Load(), probeEvery
	if r.answeredSinceProbe.Load() {
		pause = probeAgain
	}
	if now-last < int64(pause) || !r.lastProbe.CompareAndSwap(last, now) {
		return
	}
	r.answeredSinceProbe.Store(false)
	r.common.inBackground(func() {
		options := r.client.Options()
		why := probe{options, r.common.timeout}.findCause()
		if why == nil || r.healthy.Load() {
			return
		}
		r.cause.Store(&why)
		r.common.listener.Unreachable(options.Addr, why)
	})
}

// gotNone reports whether go-redis had no connection for a command. A read that takes too long ends
// by the socket's deadline, never with the context's own error.
func hadNoConnection(err error) bool {
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) ||
		errors.Is(err, redis.ErrPoolTimeout) || errors.Is(err, redis.ErrPoolExhausted)
}

// isTimeout reports whether an error means that a time is over. The timeout of a dial does not
// count: go-redis gives a dial a timeout of its own, not the command's deadline.
func isTimeout(err error) bool {
	var dial *net.OpError
	if errors.As(err, &dial) && dial.Op == "dial" {
		return false
	}
	var network net.Error
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) || errors.As(err, &network) && network.Timeout()
}
