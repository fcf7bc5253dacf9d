package redisstore

import (
	"errors"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/accesslimit/accesslimit/core/internal/failure"
)

// replyPrefixes are the prefixes of error replies by class, without ERR.
var replyPrefixes = map[failure.Class][]string{
	failure.NotReady: {
		"LOADING", "READONLY", "MASTERDOWN", "BUSY", "NOREPLICAS", "CLUSTERDOWN", "TRYAGAIN", "MOVED", "ASK",
		"max number of clients",
	},
	failure.Refused: {
		"OOM", "NOAUTH", "WRONGPASS", "NOPERM", "CROSSSLOT", "MISCONF", "DENIED", "unknown command",
		"DB index is out of range", "This instance has cluster support disabled", "invalid password", "Client sent AUTH",
		"AUTH <password> called", "wrong number of arguments for 'auth'", "Protocol error: unauthenticated",
	},
}

// scriptErrors are words in error replies of scripts. Redis 6.2 puts other words before all of them,
// so each prefix above that a script can run into is here again. The first match counts.
var scriptErrors = []struct {
	class failure.Class
	words []string
}{
	{failure.Foreign, []string{"WRONGTYPE", "NOTACOUNTER", "data string too short"}}, // not a counter's value
	{failure.Refused, append([]string{"OOM", "MISCONF", syntaxError, noEffects}, noPermission...)},
	{failure.NotReady, []string{"READONLY", "NOREPLICAS"}},
}

// noEffects are words in the reply of Redis 6.2 to scripts that read the time before they write, if
// lua-replicate-commands is off.
const noEffects = "Write commands not allowed after non deterministic commands"

// noPermission are words in error replies of scripts that our user may not run to the end, or that
// nobody may, because the server's configuration has renamed a command.
var noPermission = []string{
	"The user executing the script", "NOPERM", "ACL failure in script",
	"Unknown Redis command called from", "Unknown command called from",
}

// refusedWrites are words in the error replies with which a server refuses the first write of a
// script, whatever its keys hold. It checks this once for each script, so nothing was written. A
// failed AOF is missing here: Redis 6.2 may notice that between two writes.
var refusedWrites = []string{
	"OOM command not allowed", "READONLY You can't write", " is configured to save RDB snapshots", "NOREPLICAS ",
}

// isWriteRefused reports whether a server that now takes no writes refused the first one of a
// script.
func isWriteRefused(err error) bool { return isReplyWith(err, refusedWrites) }

// isNoPermission reports whether our user cannot run a command, or a script to its end.
func isNoPermission(err error) bool { return isReplyWith(err, noPermission) }

// isReplyWith reports whether an error is a reply that contains any of these words.
func isReplyWith(err error, words []string) bool {
	var reply redis.Error
	return errors.As(err, &reply) && slices.ContainsFunc(words, func(w string) bool { return strings.Contains(err.Error(), w) })
}

func classOfReply(err error) failure.Class {
	for class, prefixes := range replyPrefixes {
		if slices.ContainsFunc(prefixes, func(prefix string) bool { return isReply(err, prefix) }) {
			return class
		}
	}
	for _, e := range scriptErrors {
		if slices.ContainsFunc(e.words, func(words string) bool { return strings.Contains(err.Error(), words) }) {
			return e.class
		}
	}
	return failure.Unexpected
}

// isSlotUnavailable reports whether the server refused the command unseen, because the slot is
// elsewhere or on its way.
func isSlotUnavailable(err error) bool {
	return err != nil && (isRedirect(err) || isReply(err, "CLUSTERDOWN") || isReadOnly(err))
}

// isReadOnly reports whether a replica refused to write. If a script wrote, the error reply of
// Redis 6.2 begins with other words.
func isReadOnly(err error) bool {
	var reply redis.Error
	return errors.As(err, &reply) && strings.Contains(err.Error(), "READONLY You can't write against a read only replica")
}

// isRedirect reports whether a healthy node of a cluster answered that it does not serve the slot,
// or not now.
func isRedirect(err error) bool {
	return isReply(err, "MOVED ") || isReply(err, "ASK ") || isReply(err, "TRYAGAIN")
}

// isReply reports whether an error is a reply with a prefix. go-redis's HasErrorPrefix allocates
// even if there is no error, which is nearly always.
func isReply(err error, prefix string) bool {
	return err != nil && redis.HasErrorPrefix(err, prefix)
}
