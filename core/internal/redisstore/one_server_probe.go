package redisstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	// probeKeys is the number of probe keys. If a proxy keeps one tenth of the keys on another
	// server, 64 random keys are all on one server in 1 of 800 attempts, and 16 keys in 1 of 5.
	probeKeys = 64
	// probeLife is the time to live of the probe keys.
	probeLife = 5 * time.Second

	// differentTags and sameTag are forms of probe keys.
	differentTags, sameTag = "%s~%s-%d}:probe", "%s~%s}:probe-%d"
)

var (
	// errSeveralServers means that the keys are not all on one server.
	errSeveralServers = errors.New("a script did not find all of the keys that were just written, as with a proxy that spreads keys over servers")
	// errNoProbeKeys proves nothing: the server may have been stopped for too long, or flushed.
	errNoProbeKeys = errors.New("the keys that were just written are gone")
)

// probe writes the probe keys one by one, and reads all of them in one script. form makes a key from the head
// of all keys, the value of this probe, and a number.
func (p *oneServerProof) probe(form string) error {
	ctx, cancel := context.WithTimeout(p.common.closing, p.common.timeout)
	defer cancel()
	value := strconv.FormatUint(rand.Uint64(), 36)
	keys := make([]string, probeKeys)
	for i := range keys {
		keys[i] = fmt.Sprintf(form, p.common.keyHead, value, i)
	}
	if err := p.write(ctx, keys, value); err != nil {
		return err
	}
	args := []any{"eval", "return redis.call('MGET', unpack(KEYS))", len(keys)}
	for _, key := range keys {
		args = append(args, key)
	}
	read := &listCommand{StringSliceCmd: redis.NewStringSliceCmd(ctx, args...)}
	// The scripts that rely on the proof are sent in pipelines. This one is too, because newer
	// versions of go-redis have separate connections for pipelines.
	if err := cmp.Or(p.node.processAll(ctx, []redis.Cmder{read}), read.Err()); err != nil {
		return err
	}
	switch found := read.Val(); {
	case len(found) != probeKeys || found[0] != value: // even a proxy finds the first key
		return errNoProbeKeys
	case slices.ContainsFunc(found, func(f string) bool { return f != value }):
		return errSeveralServers
	}
	return nil
}

// write sets each key to the value, with one command per key.
func (p *oneServerProof) write(ctx context.Context, keys []string, value string) error {
	cmds := make([]redis.Cmder, len(keys))
	for i, key := range keys {
		cmds[i] = &valueCommand{Cmd: redis.NewCmd(ctx, "set", key, value, "px", probeLife.Milliseconds())}
	}
	if err := p.node.processAll(ctx, cmds); err != nil {
		return err
	}
	for _, cmd := range cmds {
		if err := cmd.Err(); err != nil {
			return err
		}
	}
	return nil
}
