package redisstore

import (
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/redis/go-redis/v9"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
)

// Operate runs commands that decide nothing. Together they take no longer than Timeout. The context
// that do receives is for the methods Script, Command, ScriptEach, ReadEach and GetAll. The error
// is the context's own if the context has ended, and otherwise a *failure.Error.
func (s *Store) Operate(ctx context.Context, do func(ctx context.Context) error) error {
	return s.withTimeout(ctx, do)
}

// Script runs a script on keys of one hash tag, once, and returns its reply, which is a list. It is
// called within Operate.
func (s *Store) Script(ctx context.Context, script *algorithm.Script, keys []string, args ...any) (reply []any, err error) {
	all := newArgs(script, len(keys), len(args))
	for _, key := range keys {
		all = append(all, key)
	}
	all = append(all, args...)
	call := newOperation(func(int64) (*algorithm.Script, []any) { return script, all })
	call.nested = true
	shard, err := s.router.shard(ctx, []byte(keys[0]))
	if err != nil {
		return nil, err
	}
	if err := shard.runScript(ctx, call, nil); err != nil {
		return nil, err
	}
	return call.value.Slice()
}

// Pinned is a Store whose keys never move to another server. In a Ring, they have a server of their
// own choice by its name: if it is down, the commands fail, where a Store would ask another one.
type Pinned struct{ *Store }

// Script is [Store.Script].
func (p Pinned) Script(ctx context.Context, script *algorithm.Script, keys []string, args ...any) (reply []any, err error) {
	store, err := p.at(ctx, keys[0])
	if err != nil {
		return nil, err
	}
	return store.Script(ctx, script, keys, args...)
}

// Command is [Store.Command].
func (p Pinned) Command(ctx context.Context, name, key string, args ...any) (reply any, err error) {
	store, err := p.at(ctx, key)
	if err != nil {
		return nil, err
	}
	return store.Command(ctx, name, key, args...)
}

// at returns the store with the server of a key as its only one.
func (p Pinned) at(ctx context.Context, key string) (*Store, error) {
	only, err := p.router.pinned(ctx, []byte(key))
	if err != nil {
		return nil, err
	}
	return &Store{common: p.common, router: singleShard{only}}, nil
}

// Command runs a command on a key, once, and returns its reply, which is nil if Redis has none. It
// is called within Operate.
func (s *Store) Command(ctx context.Context, name, key string, args ...any) (reply any, err error) {
	shard, err := s.router.shard(ctx, []byte(key))
	if err != nil {
		return nil, err
	}
	cmd := &valueCommand{Cmd: redis.NewCmd(ctx, append([]any{name, key}, args...)...)}
	err = shard.node.process(ctx, cmd)
	switch {
	case errors.Is(err, redis.Nil):
		return nil, nil
	case err != nil:
		return nil, nameForeignKeys(err, func() []string { return []string{key} })
	}
	return cmd.Val(), nil
}

// Value is what a key holds, or why that could not be read.
type Value struct {
	Text string
	Ok   bool // there is such a key
	Err  error
}

// GetAll returns the values of keys that may lie on several shards, as ReadEach does. It is called
// within Operate. The errors of single values are classified like those of Operate.
func (s *Store) GetAll(ctx context.Context, keys []string) []Value {
	commands := make([][]any, len(keys))
	for i, key := range keys {
		commands[i] = []any{"get", key}
	}
	values := make([]Value, len(keys))
	for i, reply := range s.ReadEach(ctx, commands) {
		values[i].Err = reply.Err
		values[i].Text, values[i].Ok = reply.Value.(string)
	}
	return values
}

// CommandReply is the reply to a command, nil if Redis has none, or why there is none.
type CommandReply struct {
	Value any
	Err   error
}

// commandEach runs commands, each once and on a key, which is its second word. The keys may be on
// several shards. There is one trip to each shard, in which its commands run in order; commands of
// others may run in between. It is called within Operate. The errors of single replies are
// classified like those of Operate.
func (s *Store) commandEach(ctx context.Context, commands [][]any) []CommandReply {
	all := make([]keyed, len(commands))
	for i, command := range commands {
		all[i] = keyed{command[1].(string), command}
	}
	return s.each(ctx, all)
}

// KeyScript is a call of a script with one key.
type KeyScript struct {
	Key  string
	Args []any
}

// ScriptEach is commandEach for calls of a script. A server that does not know it gets its text in a
// second trip.
func (s *Store) ScriptEach(ctx context.Context, script *algorithm.Script, calls []KeyScript) []CommandReply {
	all := make([]keyed, len(calls))
	for i, call := range calls {
		all[i] = keyed{call.Key, append(append(newArgs(script, 1, len(call.Args)), call.Key), call.Args...)}
	}
	replies := s.each(ctx, all)
	var texts []keyed
	var places []int
	for i := range replies {
		if isReply(replies[i].Err, "NOSCRIPT") {
			texts, places = append(texts, keyed{all[i].key, asEval(all[i].command, script)}), append(places, i)
		}
	}
	for i, reply := range s.each(ctx, texts) {
		replies[places[i]] = reply
	}
	return replies
}

// keyed is a command on a key.
type keyed struct {
	key     string
	command []any
}

func (s *Store) each(ctx context.Context, commands []keyed) []CommandReply {
	replies := make([]CommandReply, len(commands))
	byShard := make(map[*shard][]int)
	for i, c := range commands {
		if shard, err := s.router.shard(ctx, []byte(c.key)); err != nil {
			replies[i].Err = toFailure(err, s.timeout)
		} else {
			byShard[shard] = append(byShard[shard], i)
		}
	}
	shards := slices.Collect(maps.Keys(byShard))
	failed := s.sideBySide(len(shards), func(i int) error {
		places := byShard[shards[i]]
		cmds := make([]redis.Cmder, len(places))
		for n, at := range places {
			cmds[n] = &valueCommand{Cmd: redis.NewCmd(ctx, commands[at].command...)}
		}
		shards[i].processEach(ctx, cmds)
		for n, at := range places {
			replies[at] = s.readReply(cmds[n].(*valueCommand), commands[at].key)
		}
		return nil
	})
	for i, err := range failed {
		for _, at := range byShard[shards[i]] {
			if err != nil {
				replies[at].Err = toFailure(err, s.timeout)
			}
		}
	}
	return replies
}

func (s *Store) readReply(cmd *valueCommand, key string) (r CommandReply) {
	switch err := cmd.Err(); {
	case err == nil:
		r.Value = cmd.Val()
	case !errors.Is(err, redis.Nil):
		r.Err = toFailure(nameForeignKeys(err, func() []string { return []string{key} }), s.timeout)
	}
	return r
}

// processEach runs commands in one trip if the server can, and leaves each one's error in it.
// Commands that were redirected follow one by one.
func (s *shard) processEach(ctx context.Context, cmds []redis.Cmder) {
	var failed error
	if s.pipelines != nil {
		failed = s.pipelines.processAll(ctx, cmds)
	}
	for i, cmd := range cmds {
		refusal := cmd.Err()
		switch {
		case failed != nil:
			cmd.SetErr(failed)
		case s.pipelines == nil:
			cmd.SetErr(s.process(ctx, cmd.(command), nil))
		case s.hasMovingSlots() && isSlotUnavailable(refusal):
			again := &valueCommand{Cmd: redis.NewCmd(ctx, cmd.(*valueCommand).Cmd.Args()...)}
			again.SetErr(s.process(ctx, again, refusal))
			cmds[i] = again
		}
	}
}

// RunScript runs a script with one key, once, and returns its reply, which is a list.
func (s *Store) RunScript(ctx context.Context, script *algorithm.Script, key string, args ...any) (reply []any, err error) {
	err = s.Operate(ctx, func(ctx context.Context) error {
		reply, err = s.Script(ctx, script, []string{key}, args...)
		return err
	})
	return reply, err
}

// GetRange returns at most the first most bytes of a string, or "" if there is no such key.
func (s *Store) GetRange(ctx context.Context, key string, most int) (value string, err error) {
	err = s.Operate(ctx, func(ctx context.Context) error {
		reply, err := s.Command(ctx, "getrange", key, 0, most-1)
		value, _ = reply.(string)
		return err
	})
	return value, err
}
