package redisstore

import "errors"

// guard has a command written to a connection only while the proof that one server holds all keys
// is valid. Otherwise, a script that decides nothing is written in its place. It has one of the
// keys, because a proxy may hang up if there is none. The zero guard lets every command through.
type guard struct {
	proof *oneServerProof
	key   any
}

// unproved is the reply of that script.
const unproved = "unproved"

// errUnproved ends a call that was not decided, because its keys have different hash tags, and it
// is not proved, or not true, that one server holds them all.
var errUnproved = errors.New("it is not proved that one server holds all keys")

// args returns what is to be written. go-redis asks for it when it has a connection for the
// command.
func (g *guard) args(args []any) []any {
	if g.proof == nil || g.proof.holds() {
		return args
	}
	return []any{"eval", "return {'" + unproved + "'}", 1, g.key}
}

// isRefuted reports whether the server refused a script unseen because it does not serve all of the
// keys.
func isRefuted(err error) bool { return isReply(err, "CROSSSLOT") || isRedirect(err) }
