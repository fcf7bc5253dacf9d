package inflight

import (
	"context"
	"errors"
	"net/http"

	"github.com/accesslimit/accesslimit/core/adapter"
)

// grpcInternal is the status code INTERNAL of gRPC.
const grpcInternal = 13

// ending is how a call ended: with a status, or with one of two possible statuses. Callers can
// cause the second case on purpose, so the call counts if it counts by either status.
type ending [2]int

// counts reports whether the call counts.
func (e ending) counts(count func(status int) bool) bool {
	return count(e[0]) || e[1] != e[0] && count(e[1])
}

// panicked returns the ending of a call whose handler panicked. sent is the status that was sent
// before, or 0. The reply may have begun, because some handlers panic if the caller leaves in the
// middle of it.
func panicked(isRPC bool, sent int) ending {
	if isRPC {
		return ending{grpcInternal, grpcInternal}
	}
	if adapter.IsFinal(sent) {
		return ending{http.StatusInternalServerError, sent}
	}
	return ending{http.StatusInternalServerError, http.StatusInternalServerError}
}

// statusCallerLeft is the outcome of a call whose caller left before it was answered. nginx
// introduced the number.
const statusCallerLeft = 499

// returned returns the ending of a call whose handler returned a status. sent is the status that
// was sent, or 0, and ctx is the call's own context. If nothing was sent and the status is 0 or
// informational (gin and echo report early hints as the status), the server sends 200. A caller who
// seems to have left may be cheating: a client that closes its half of the connection still gets
// the 200.
func returned(ctx context.Context, isRPC bool, status, sent int) ending {
	if !isRPC && !adapter.IsFinal(status) {
		status = sent // gin reports a hint as the status, and a framework may not notice a flush
	}
	switch {
	case isRPC || adapter.IsFinal(status):
		return ending{status, status}
	case errors.Is(ctx.Err(), context.Canceled):
		return ending{http.StatusOK, statusCallerLeft}
	default:
		return ending{http.StatusOK, http.StatusOK}
	}
}
