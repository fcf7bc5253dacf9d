package redisstore

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/accesslimit/accesslimit/core/internal/failure"
)

// ErrForeign says that a key of ours holds what we never wrote.
var ErrForeign = errors.New("a key of this limiter holds something else, which is left as it is; choose a Prefix that nobody else writes to, or remove the key")

// errNoTurn and errNoConnection end calls that were not sent, and so not charged: no turn to be sent
// came in time, or no connection for the lane. errNoAnswer ends a call that was sent, and may have
// been charged.
var (
	errNoTurn             = errors.New("no turn came in time, because the calls before it were not answered yet")
	errNoAnswer     error = unanswered{errors.New("nothing came back")}
	errNoConnection       = errors.New("no connection came in time")
)

// unanswered is the end of the context of who waited for an answer.
type unanswered struct{ end error }

func (u unanswered) Error() string { return u.end.Error() }

func (u unanswered) Unwrap() error { return u.end }

// errNoSlots is why a call does not know which master to ask.
var errNoSlots = errors.New("no server of the cluster tells which slots it has")

// unreached is the failure of a command that was not sent, because no connection could be set up.
type unreached struct {
	cause error
	ended bool // when the call's time ended, rather than by itself
}

func (u *unreached) Error() string { return u.cause.Error() }

func (u *unreached) Unwrap() error { return u.cause }

// replies are what error replies begin with, but for an ERR.
var replyClasses = map[string]failure.Class{
	"LOADING": failure.NotReady, "READONLY": failure.NotReady, "MASTERDOWN": failure.NotReady, "BUSY": failure.NotReady, "NOREPLICAS": failure.NotReady, "CLUSTERDOWN": failure.NotReady,
	"TRYAGAIN": failure.NotReady, "MOVED": failure.NotReady, "ASK": failure.NotReady, "max number of clients": failure.NotReady,
	"OOM": failure.Refused, "NOAUTH": failure.Refused, "WRONGPASS": failure.Refused, "NOPERM": failure.Refused, "CROSSSLOT": failure.Refused, "MISCONF": failure.Refused, "unknown command": failure.Refused,
	"DB index is out of range": failure.Refused, "DENIED": failure.Refused, "This instance has cluster support disabled": failure.Refused,
	"invalid password": failure.Refused, "Client sent AUTH": failure.Refused, "AUTH <password> called": failure.Refused,
	"wrong number of arguments for 'auth'": failure.Refused, "Protocol error: unauthenticated": failure.Refused,
}

// signs are words anywhere in the error of a script, in which other words stand in front.
var scriptErrorClasses = []struct {
	words string
	class failure.Class
}{
	{"WRONGTYPE", failure.Foreign}, {"NOTACOUNTER", failure.Foreign}, {"data string too short", failure.Foreign}, // a value that is not a counter
	{"The user executing the script", failure.Refused}, {"NOPERM", failure.Refused}, {"ACL failure in script", failure.Refused}, {"OOM", failure.Refused}, {"READONLY", failure.NotReady},
	{syntaxError, failure.Refused},
}

// nobodyThere is what the client's own errors begin with when it had nowhere to send a command to. Others it makes of replies that it
// cannot read: what they answer may have been charged.
var unreachablePrefixes = []string{
	"redis: all sentinels", "redis: no sentinels", "redis: all ring shards are down", "redis: cluster has no nodes", "redis: connection not available",
	"redis: connection is not usable",
}

// classOf is the kind of an error.
func classOf(err error) failure.Class {
	var known *failure.Error
	var reply redis.Error
	var late unanswered
	var unsent *unreached
	var certificate *tls.CertificateVerificationError
	var header tls.RecordHeaderError
	var dial *net.OpError
	var network net.Error
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
		return classOfReply(err)
	case errors.As(err, &late):
		return failure.Timeout
	case errors.As(err, &unsent):
		return failure.Unreachable
	case errors.As(err, &dial) && dial.Op == "dial", errors.Is(err, redis.ErrClosed), errors.As(err, &certificate), errors.As(err, &header):
		return failure.Unreachable
	case errors.Is(err, redis.ErrPoolTimeout), errors.Is(err, redis.ErrPoolExhausted), errors.Is(err, errNoTurn),
		errors.Is(err, errNoConnection), errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled): // a read ends by the socket's deadline, not by the context's
		return failure.NoConnection
	case errors.As(err, &network) && network.Timeout():
		return failure.Timeout
	case errors.As(err, &network), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return failure.Lost
	case slices.ContainsFunc(unreachablePrefixes, func(words string) bool { return strings.HasPrefix(err.Error(), words) }):
		return failure.Unreachable
	default:
		return failure.Unexpected
	}
}

func classOfReply(err error) failure.Class {
	for prefix, class := range replyClasses {
		if isReply(err, prefix) {
			return class
		}
	}
	for _, sign := range scriptErrorClasses {
		if strings.Contains(err.Error(), sign.words) {
			return sign.class
		}
	}
	return failure.Unexpected
}

// explain makes a failure of an error, and names our own timeout where that is what ended the call.
func toFailure(err error, timeout time.Duration) *failure.Error {
	var known *failure.Error
	if errors.As(err, &known) {
		return known
	}
	var late *unreached
	switch class := classOf(err); {
	case class == failure.Timeout || class == failure.NoConnection || errors.As(err, &late) && late.ended:
		return failure.NoAnswer(class, timeout, err)
	case errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled): // net says so of a dial's own timeout
		return &failure.Error{Class: class, Err: errors.New(err.Error())}
	default:
		return &failure.Error{Class: class, Err: err}
	}
}

// nameForeignKeys adds the keys of a script to its error if it met a value that is none of ours.
func nameForeignKeys(err error, keys func() []string) error {
	if classOf(err) != failure.Foreign {
		return err
	}
	return fmt.Errorf("%w: one of %q: %w", ErrForeign, keys(), err)
}

// movedAway says whether the server refused the command unseen, because the slot is elsewhere or on its way.
func isSlotUnavailable(err error) bool {
	return err != nil && (isRedirect(err) || isReply(err, "CLUSTERDOWN") || isReadOnly(err))
}

// readOnly reports whether a replica refused to write. Redis 6.2 puts other words in front where it was a script that wrote.
func isReadOnly(err error) bool {
	var reply redis.Error
	return errors.As(err, &reply) && strings.Contains(err.Error(), "READONLY You can't write against a read only replica")
}

// elsewhere says whether a healthy node of a cluster answered that it does not serve the slot, or not now.
func isRedirect(err error) bool {
	return isReply(err, "MOVED ") || isReply(err, "ASK ") || isReply(err, "TRYAGAIN")
}

// replied reports whether an error is a reply that begins so. go-redis's HasErrorPrefix allocates,
// even where there is no error, which is nearly always.
func isReply(err error, prefix string) bool {
	return err != nil && redis.HasErrorPrefix(err, prefix)
}
