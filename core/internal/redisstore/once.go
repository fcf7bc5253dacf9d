package redisstore

import (
	"sync/atomic"

	"github.com/redis/go-redis/v9"
)

// onceCmd is a command that is sent once, and records whether it was.
//
// go-redis would send a command, or its pipeline, again after a timeout or a lost connection: the
// first attempt may have charged, and with its defaults it would charge up to four times. Its
// errors also do not distinguish a command that got no answer from one that got no connection. It
// asks for a command's arguments only when it has a connection and writes the command there, or
// when a hook of the client's owner looks at them. Then a command may be taken for sent that was
// not, but never the other way round.
type onceCmd interface {
	redis.Cmder
	sending() *sending
}

// sending is how far a command has come.
type sending struct {
	written bool
	unsent  *atomic.Bool // a lane's, cleared when the command is written; nil for a call alone
}

func (s *sending) write() {
	s.written = true
	if s.unsent != nil {
		s.unsent.Store(false)
	}
}

// once and onceString are commands by the type of their reply.
type (
	once struct {
		*redis.Cmd
		state sending
	}
	onceString struct {
		*redis.StringCmd
		state sending
	}
)

// NoRetry implements redis.Cmder.
func (c *once) NoRetry() bool { return true }

// Args implements redis.Cmder.
func (c *once) Args() []any {
	c.state.write()
	return c.Cmd.Args()
}

func (c *once) sending() *sending { return &c.state }

// NoRetry implements redis.Cmder.
func (c *onceString) NoRetry() bool { return true }

// Args implements redis.Cmder.
func (c *onceString) Args() []any {
	c.state.write()
	return c.StringCmd.Args()
}

func (c *onceString) sending() *sending { return &c.state }
