package redisstore

import "github.com/accesslimit/accesslimit/core/internal/algorithm"

// The arguments of a command are EVALSHA, the script, how many keys, the keys, and the script's own
// arguments. All of them are copies, because a command that hangs may outlive the call that it was
// made for.

// newArgs begins arguments for a number of keys, with room for a number of further arguments.
func newArgs(script *algorithm.Script, keys, further int) []any {
	return appendArgs(make([]any, 0, 3+keys+further), script, keys)
}

// appendArgs begins arguments in the room of a slice.
func appendArgs(room []any, script *algorithm.Script, keys int) []any {
	return append(room, "evalsha", script.Name, keys)
}

// asEval returns the same arguments with the script's text, for a server that does not know it.
func asEval(args []any, script *algorithm.Script) []any {
	return append([]any{"eval", script.Text}, args[2:]...)
}

// argKeys returns the keys in a command's arguments.
func argKeys(args []any) (keys []string) {
	for _, key := range args[3 : 3+args[2].(int)] {
		keys = append(keys, key.(string))
	}
	return keys
}

// onKeys begins arguments with keys, which are those of n things, and behind them that of a record, if there
// is one.
func onKeys(script *algorithm.Script, n int, key func(i int) []byte, record []byte, further int) []any {
	keys := n
	if record != nil {
		keys++
	}
	args := newArgs(script, keys, further)
	for i := range n {
		args = append(args, string(key(i)))
	}
	if record != nil {
		args = append(args, string(record))
	}
	return args
}

// onKey begins arguments with one key.
func onKey(script *algorithm.Script, key []byte) []any {
	return append(newArgs(script, 1, 6), string(key))
}
