package redisstore

import "errors"

// guard lets a command be written to a connection only while the proof that one server holds all
// keys is valid. Otherwise it writes a script that decides nothing. That script has one of the
// keys, because a proxy may close the connection if there is none. The zero guard lets every
// command through.
type guard struct {
	proof *oneServerProof
	key   any
}

// unproved is the reply of that script.
const unproved = "unproved"

// errUnproved ends a call that was not decided because its keys have different hash tags, and it is
// not proved, or not true, that one server holds them all.
var errUnproved = errors.New("it is not proved that one server holds all keys")

// args returns the arguments to write. go-redis asks for them when it has a connection for the
// command.
func (g *guard) args(args []any) []any {
	if g.proof == nil || g.proof.holds() {
		return args
	}
	return []any{"eval", "return {'" + unproved + "'}", 1, g.key}
}

// isRefuted reports whether the server refused a script without running it, because it does not
// serve all of the keys.
func isRefuted(err error) bool { return isReply(err, "CROSSSLOT") || isRedirect(err) }
