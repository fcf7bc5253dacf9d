package redisstore

import (
	"context"

	"github.com/redis/go-redis/v9"
)

// command is a command that is sent once, and records whether it was.
//
// go-redis would send a command, or its pipeline, again after a timeout or a lost connection: the
// first attempt may have charged, and with its defaults it would charge up to four times. Its
// errors also do not distinguish a command that got no answer from one that got no connection. It
// asks for a command's arguments only when it has a connection and writes the command there, or
// when a hook of the client's owner looks at them. Because of hooks, a command may be taken for
// sent although it was not, but never the other way round.
//
// go-redis honours NoRetry since 9.19.0. The Close of that version can hang while the client is in
// use, so go.mod names 9.20.0.
type command interface {
	redis.Cmder
	state() *sendState
}

// sendState records how far a command has come.
type sendState struct {
	written   bool
	departure *departure      // of the lane; nil for a direct call
	caller    context.Context // a direct call is not sent once this has ended; may be nil
}

// write returns the arguments to write. The fourth argument must be a key.
func (s *sendState) write(args []any) []any {
	s.written = true
	recalled := s.caller != nil && s.caller.Err() != nil
	if s.departure != nil {
		s.departure.leave()
		recalled = s.departure.recalled
	}
	if recalled {
		return []any{"eval", recallScript, 1, args[3]}
	}
	return args
}

// valueCommand is a command with any reply.
type valueCommand struct {
	*redis.Cmd
	sent sendState
}

// NoRetry implements redis.Cmder.
func (c *valueCommand) NoRetry() bool { return true }

// Args implements redis.Cmder.
func (c *valueCommand) Args() []any {
	return c.sent.write(c.Cmd.Args())
}

func (c *valueCommand) state() *sendState { return &c.sent }
