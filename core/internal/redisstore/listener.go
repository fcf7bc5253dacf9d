package redisstore

import "time"

// Loss is what a server has lost.
type Loss struct {
	ID        string // the same in all processes that notice the loss; two losses of the latest writes may share it
	Addr      string
	Lost, How string
}

// everything is the Lost of a server that has lost all of its data.
const everything = "everything"

// All reports whether all of the data was lost, and not only the latest writes.
func (l *Loss) All() bool { return l.Lost == everything }

// Listener receives what an operator should know about the servers. Its methods are called in the
// background, and may be called concurrently.
type Listener interface {
	// BreakerOpened reports that a server did not answer, and gets no calls for now.
	BreakerOpened(addr string)
	// BreakerClosed reports that it answers again.
	BreakerClosed(addr string, after time.Duration)
	// Unreachable reports why no connection to a server can be set up.
	Unreachable(addr string, why error)
	// TooOld reports a server whose version does not support the scripts.
	TooOld(addr, version string)
	// Lost reports that a server has lost data.
	Lost(l Loss)
	// Evicts reports a server that evicts counters when its memory is full.
	Evicts(addr, policy string)
	// OneKeyPerScript reports why a script for a server has only the keys of one subject and one
	// call, although scripts with more keys would be faster.
	OneKeyPerScript(addr string, why error)
	// Panicked reports a panic that was caught, with its stack.
	Panicked(err error)
	// TagsIgnored reports a proxy that keeps keys with the same hash tag on several servers, so that
	// the counters of one call cannot be decided together.
	TagsIgnored(addr string)
}

// noListener ignores everything.
type noListener struct{}

func (noListener) BreakerOpened(string)                {}
func (noListener) BreakerClosed(string, time.Duration) {}
func (noListener) Unreachable(string, error)           {}
func (noListener) TooOld(string, string)               {}
func (noListener) Lost(Loss)                           {}
func (noListener) Evicts(string, string)               {}
func (noListener) OneKeyPerScript(string, error)       {}
func (noListener) TagsIgnored(string)                  {}
func (noListener) Panicked(error)                      {}
