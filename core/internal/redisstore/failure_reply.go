package redisstore

import (
	"errors"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/accesslimit/accesslimit/core/internal/failure"
)

// refusedWrites are words in the error replies with which a server refuses the first write of a
// script, whatever its keys hold. It checks this once for each script, so nothing was written. The
// error for a failed AOF is not in the list, because Redis 6.2 may notice the failure between two
// writes.
var refusedWrites = []string{
	"OOM command not allowed", "READONLY You can't write", " is configured to save RDB snapshots", "NOREPLICAS ",
}

// isWriteRefused reports whether a server that now takes no writes refused the first one of a
// script.
func isWriteRefused(err error) bool {
	var reply redis.Error
	return errors.As(err, &reply) && slices.ContainsFunc(refusedWrites, func(w string) bool { return strings.Contains(reply.Error(), w) })
}

// IsNoPermission reports whether Redis refused a command, or a part of a script, because our user
// may not run it or not for this key.
func IsNoPermission(err error) bool {
	var reply redis.Error
	return errors.As(err, &reply) && failure.LacksRight(reply.Error())
}

// isSlotUnavailable reports whether the server refused the command without running it, because the
// slot is on another server or being moved.
func isSlotUnavailable(err error) bool {
	return err != nil && (isRedirect(err) || isReply(err, "CLUSTERDOWN") || isReadOnly(err))
}

// isReadOnly reports whether a replica refused to write. If a script wrote, the error reply of
// Redis 6.2 begins with other words.
func isReadOnly(err error) bool {
	var reply redis.Error
	return errors.As(err, &reply) && strings.Contains(err.Error(), "READONLY You can't write against a read only replica")
}

// isRedirect reports whether a healthy node of a cluster answered that it does not serve the slot
// now.
func isRedirect(err error) bool {
	return isReply(err, "MOVED ") || isReply(err, "ASK ") || isReply(err, "TRYAGAIN")
}

// isReply reports whether an error is a reply with a prefix. go-redis's HasErrorPrefix allocates
// even if there is no error, which is nearly always.
func isReply(err error, prefix string) bool {
	return err != nil && redis.HasErrorPrefix(err, prefix)
}
