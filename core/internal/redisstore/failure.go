package redisstore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
)

// Failure is why a call got no answer from Redis.
type Failure struct {
	Class Class
	Err   error
}

// Error implements error.
func (f *Failure) Error() string { return f.Err.Error() }

// Unwrap implements errors.Unwrap. It leads to no context's error: that is only ever the caller's.
func (f *Failure) Unwrap() error { return f.Err }

// Class is the kind of a failure.
type Class int

// The classes. After Timeout and Lost nobody knows whether the call was charged; after all others but Unexpected it surely was not.
const (
	Timeout      Class = iota // asked, and not answered in time
	Lost                      // the connection broke while the answer was awaited
	Unreachable               // no connection could be opened
	NoConnection              // no connection, or no place in a pipeline, came free in time
	NotReady                  // the server says that it cannot at the moment
	BreakerOpen               // not asked, because others got no answer
	Refused                   // the server says that we may not, or has no room: somebody has to change something
	Foreign                   // a key of ours holds what we never wrote
	Unexpected                // an answer that the script does not give
	classes
)

// ErrForeign says that a key of ours holds what we never wrote.
var ErrForeign = errors.New("a key of this limiter holds something else, which is left as it is; choose a Prefix that nobody else writes to, or remove the key")

// errWaited is the end of a call whose turn to be sent did not come in time, errAwaited that of one whose answer did not.
var errWaited, errAwaited error = errors.New("no turn came in time"), unanswered{errors.New("nothing came back")}

// unanswered is the end of the context of who waited for an answer.
type unanswered struct{ end error }

func (u unanswered) Error() string { return u.end.Error() }

func (u unanswered) Unwrap() error { return u.end }

// replies are what error replies begin with, but for an ERR.
var replies = map[string]Class{
	"LOADING": NotReady, "READONLY": NotReady, "MASTERDOWN": NotReady, "BUSY": NotReady, "NOREPLICAS": NotReady, "CLUSTERDOWN": NotReady,
	"TRYAGAIN": NotReady, "MOVED": NotReady, "ASK": NotReady, "max number of clients": NotReady,
	"OOM": Refused, "NOAUTH": Refused, "WRONGPASS": Refused, "NOPERM": Refused, "CROSSSLOT": Refused, "MISCONF": Refused, "unknown command": Refused,
}

// signs are words anywhere in the error of a script, in which other words stand in front.
var signs = []struct {
	words string
	class Class
}{
	{"WRONGTYPE", Foreign}, {"NOTACOUNTER", Foreign}, {"data string too short", Foreign}, // a value that is not a counter
	{"The user executing the script", Refused}, {"NOPERM", Refused}, {"OOM", Refused}, {"READONLY", NotReady},
}

// classOf is the kind of an error.
func classOf(err error) Class {
	var known *Failure
	var reply redis.Error
	var late unanswered
	var dial *net.OpError
	var network net.Error
	switch {
	case err == nil:
		return Unexpected
	case errors.As(err, &known):
		return known.Class
	case errors.Is(err, errOpen):
		return BreakerOpen
	case errors.Is(err, ErrForeign):
		return Foreign
	case errors.As(err, &reply):
		return classOfReply(err)
	case errors.As(err, &late):
		return Timeout
	case errors.As(err, &dial) && dial.Op == "dial", errors.Is(err, redis.ErrClosed):
		return Unreachable
	case errors.Is(err, redis.ErrPoolTimeout), errors.Is(err, redis.ErrPoolExhausted), errors.Is(err, errWaited),
		errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled): // a read ends by the socket's deadline, not by the context's
		return NoConnection
	case errors.As(err, &network) && network.Timeout():
		return Timeout
	case errors.As(err, &network), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return Lost
	case strings.HasPrefix(err.Error(), "redis: "): // the client's own: no node, no Sentinel, no shard of the ring
		return Unreachable
	default:
		return Unexpected
	}
}

func classOfReply(err error) Class {
	for prefix, class := range replies {
		if redis.HasErrorPrefix(err, prefix) {
			return class
		}
	}
	for _, sign := range signs {
		if strings.Contains(err.Error(), sign.words) {
			return sign.class
		}
	}
	return Unexpected
}

// explain makes a failure of an error. It names our own timeout where that is what ended the call, and wraps no context's error:
// that is only ever the caller's.
func explain(err error, timeout time.Duration) *Failure {
	var known *Failure
	if errors.As(err, &known) {
		return known
	}
	class := classOf(err)
	if class == Timeout || class == NoConnection {
		err = fmt.Errorf("no answer within %v: %v", timeout, err)
	}
	return &Failure{class, err}
}

// named names the keys of a script that met a value which is none of ours.
func named(err error, counters []algorithm.Counter) error {
	if classOf(err) != Foreign {
		return err
	}
	keys := make([]string, len(counters))
	for i := range counters {
		keys[i] = string(counters[i].Key)
	}
	return namedKeys(err, keys)
}

func namedKeys(err error, keys any) error {
	if classOf(err) != Foreign {
		return err
	}
	return fmt.Errorf("%w: one of %q: %w", ErrForeign, keys, err)
}

// movedAway says whether the server refused the command unseen, because the slot is elsewhere or on its way.
func movedAway(err error) bool {
	return elsewhere(err) || redis.HasErrorPrefix(err, "CLUSTERDOWN") || redis.HasErrorPrefix(err, "READONLY")
}

// elsewhere says whether a healthy node of a cluster answered that it does not serve the slot, or not now.
func elsewhere(err error) bool {
	return redis.HasErrorPrefix(err, "MOVED ") || redis.HasErrorPrefix(err, "ASK ") || redis.HasErrorPrefix(err, "TRYAGAIN")
}
