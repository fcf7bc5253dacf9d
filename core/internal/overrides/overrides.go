// Package overrides writes, reads and lists the overrides of a rule, in Redis or in this process.
//
// In Redis, an override is stored beside the counters of its subject, where the deciding scripts
// read it. An index of the subjects is in a slot of its own.
//
// The index never misses an override, even if a process crashes or a command comes late:
//
//   - A subject is entered into the index before its override is written. An override that comes
//     more than a minute later, by the clock of Redis, is refused.
//   - An entry is removed only if it is older than an hour, if it had no override when that was
//     looked for, and if it was not entered again since then.
//
// So a removed entry has no override, and no override that relies on it can still be written, as
// long as the servers' clocks differ by less than 29 minutes.
//
// One set of the index is sorted by subject, because only then do pages follow each other exactly
// while others write. Sorted by time, an override that is set again would move to a later page, and
// ZSCAN loses its position in a failover. No script can write an override together with its entry,
// because the override is in the slot of its subject.
package overrides

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
	"github.com/accesslimit/accesslimit/core/internal/failure"
	"github.com/accesslimit/accesslimit/core/internal/rediskey"
	"github.com/accesslimit/accesslimit/core/internal/redisstore"
)

// The scripts are in this package because they do not depend on algorithms.
var (
	//go:embed enter.lua
	enterText string
	//go:embed write.lua
	writeText string
	//go:embed remove.lua
	removeText string
	//go:embed list.lua
	listText string
	//go:embed forget.lua
	forgetText string

	enterScript  = algorithm.NewScript(enterText)
	writeScript  = algorithm.NewScript(writeText)
	removeScript = algorithm.NewScript(removeText)
	listScript   = algorithm.NewScript(listText)
	forgetScript = algorithm.NewScript(forgetText)
)

// The times of the index, in microseconds.
const (
	// reliesFor is how long after its subject was entered an override may be written.
	reliesFor = int64(time.Minute / time.Microsecond)
	// keptFor is how long an entry without an override is kept at least.
	keptFor = int64(time.Hour / time.Microsecond)
)

// Most is the largest number of overrides of a rule.
const Most = 100_000

var (
	// ErrTooMany is the error if there is no room for another override.
	ErrTooMany = errors.New("there are too many overrides")
	// ErrEnded is the error of an override whose end has passed.
	ErrEnded = errors.New("the override has ended")
)

// Store holds the overrides of a rule. It is safe for concurrent use. Its errors are those above,
// those of the context, and *failure.Error.
type Store struct {
	redis         *redisstore.Store
	keyHead, tail string
	index         []string
	most          int // [Most], except in tests
	mu            sync.Mutex
	cleaned       chan struct{} // closed when the current search ends; nil if none runs
}

// Entry is a subject with the stored form of its override.
type Entry struct {
	Subject, Text string
	At            int64 // when it was read, by Redis's clock, in microseconds since the epoch
}

// New returns the Store of a name's overrides, at most limit of them. All keys begin with keyHead.
func New(redis *redisstore.Store, keyHead, name string, limit int) *Store {
	inOrder, byTime := rediskey.OverrideIndex(keyHead, name)
	return &Store{redis: redis, keyHead: keyHead, tail: rediskey.OverrideTail(name), index: []string{inOrder, byTime}, most: limit}
}

// key returns the key of a subject's override.
func (s *Store) key(subject string) string {
	return string(rediskey.Append(nil, s.keyHead, subject, s.tail))
}

// Set writes an override, and returns the previous one. It sets the override's Set to the current
// time.
func (s *Store) Set(ctx context.Context, subject string, o *algorithm.Override) (before string, existed bool, err error) {
	subject = strings.Clone(subject) // a command may outlive the call
	var refused error
	err = s.redis.Operate(ctx, func(ctx context.Context) (err error) {
		before, existed, refused, err = s.trySet(ctx, subject, o)
		if errors.Is(refused, ErrTooMany) && s.clean(ctx) {
			before, existed, refused, err = s.trySet(ctx, subject, o)
		}
		return err
	})
	if err == nil {
		err = refused
	}
	return before, existed, err
}

// trySet is called within Operate.
func (s *Store) trySet(ctx context.Context, subject string, o *algorithm.Override) (before string, existed bool, refused, err error) {
	reply, err := s.redis.Script(ctx, enterScript, s.index, subject, s.most, o.Ends)
	if err != nil {
		return "", false, nil, err
	}
	if refused, err = readEntered(reply, o); refused != nil || err != nil {
		return "", false, refused, err
	}
	text, err := o.Append(nil)
	if err != nil {
		return "", false, nil, err
	}
	reply, err = s.redis.Script(ctx, writeScript, []string{s.key(subject)}, o.Set, reliesFor, string(text), o.Ends)
	if err != nil {
		return "", false, nil, err
	}
	before, existed, err = readWritten(reply)
	return before, existed, nil, err
}

// readEntered reads the reply of enter.lua.
func readEntered(reply []any, o *algorithm.Override) (refused, err error) {
	if len(reply) != 2 {
		return nil, unexpected(reply)
	}
	now, isTime := reply[0].(int64)
	code, isCode := reply[1].(int64)
	if !isTime || !isCode {
		return nil, unexpected(reply)
	}
	o.Set = now
	switch code {
	case 0:
		return ErrTooMany, nil
	case 2:
		return ErrEnded, nil
	}
	return nil, nil
}

// readWritten reads the reply of write.lua.
func readWritten(reply []any) (before string, existed bool, err error) {
	switch {
	case len(reply) == 1 && reply[0] == int64(0):
		return "", false, &failure.Error{Class: failure.NotReady, Err: errors.New(
			"the override arrived more than a minute after its subject was entered into the index, so it was not written; " +
				"if this happens again, set the clocks of the Redis servers")}
	case len(reply) == 1:
		return "", false, nil
	case len(reply) == 2:
		before, existed = reply[1].(string)
		return before, existed, nil
	}
	return "", false, unexpected(reply)
}

func unexpected(reply any) error {
	return &failure.Error{Class: failure.Unexpected, Err: fmt.Errorf("a reply cannot be read: %v", reply)}
}

// Get returns the override of a subject in its stored form.
func (s *Store) Get(ctx context.Context, subject string) (text string, ok bool, err error) {
	err = s.redis.Operate(ctx, func(ctx context.Context) error {
		reply, err := s.redis.Command(ctx, "get", s.key(subject))
		text, ok = reply.(string)
		return err
	})
	return text, ok, err
}

// Remove removes the override of a subject, and returns it.
func (s *Store) Remove(ctx context.Context, subject string) (before string, existed bool, err error) {
	reply, err := s.redis.RunScript(ctx, removeScript, s.key(subject))
	if err != nil {
		return "", false, err
	}
	if len(reply) == 2 {
		before, existed = reply[1].(string)
	}
	return before, existed, nil
}
