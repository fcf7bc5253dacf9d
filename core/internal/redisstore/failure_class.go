package redisstore

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/accesslimit/accesslimit/core/internal/failure"
)

// classOf returns the class of an error.
func classOf(err error) failure.Class {
	var known *failure.Error
	var reply redis.Error
	var late unanswered
	switch {
	case err == nil:
		return failure.Unexpected
	case errors.As(err, &known):
		return known.Class
	case errors.Is(err, errBreakerOpen):
		return failure.BreakerOpen
	case errors.Is(err, ErrForeign):
		return failure.Foreign
	case errors.As(err, &reply):
		return failure.ClassOfReply(reply.Error())
	case errors.As(err, &late):
		return failure.Timeout
	case isConnectError(err):
		return failure.Unreachable
	case errors.Is(err, errNoTurn), errors.Is(err, errNoConnection), hadNoConnection(err):
		return failure.NoConnection
	}
	return classOfNetworkError(err)
}

// isConnectError reports whether a connection could not be set up.
func isConnectError(err error) bool {
	var unsent *unreached
	var certificate *tls.CertificateVerificationError
	var header tls.RecordHeaderError
	var dial *net.OpError
	return errors.As(err, &unsent) || errors.As(err, &dial) && dial.Op == "dial" || errors.Is(err, redis.ErrClosed) ||
		errors.As(err, &certificate) || errors.As(err, &header)
}

func classOfNetworkError(err error) failure.Class {
	var network net.Error
	switch {
	case errors.As(err, &network) && network.Timeout():
		return failure.Timeout
	case errors.As(err, &network), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return failure.Lost
	case slices.ContainsFunc(unreachablePrefixes, func(prefix string) bool { return strings.HasPrefix(err.Error(), prefix) }):
		return failure.Unreachable
	default:
		return failure.Unexpected
	}
}

// unreachablePrefixes are the prefixes of the client's own errors if it could not send a command to
// any server. The client has other errors for replies that it cannot read; those calls may have
// been charged.
var unreachablePrefixes = []string{
	"redis: all sentinels", "redis: no sentinels", "redis: all ring shards are down", "redis: cluster has no nodes",
	"redis: connection not available", "redis: connection is not usable",
}

// hadNoConnection reports whether go-redis had no connection for a command. A read that takes too
// long ends by the socket's deadline, never with the context's own error.
func hadNoConnection(err error) bool { return isContextError(err) || isPoolError(err) }

// isTimeout reports whether an error is a timeout. The timeout of a dial does not count, because
// go-redis gives a dial its own timeout instead of the command's deadline.
func isTimeout(err error) bool {
	var dial *net.OpError
	if errors.As(err, &dial) && dial.Op == "dial" {
		return false
	}
	var network net.Error
	return isContextError(err) || errors.As(err, &network) && network.Timeout()
}

func isContextError(err error) bool {
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)
}

func isPoolError(err error) bool {
	return errors.Is(err, redis.ErrPoolTimeout) || errors.Is(err, redis.ErrPoolExhausted)
}
