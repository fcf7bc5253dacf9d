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

// probe writes the probe keys one by one, and reads all of them in one script. It returns how many
// connections had been made when that script was written. form makes a key from the head of all
// keys, the value of this probe, and a number.
func (p *oneServerProof) probe(form string) (made uint32, err error) {
	ctx, cancel := context.WithTimeout(p.common.closing, p.common.timeout)
	defer cancel()
	value := strconv.FormatUint(rand.Uint64(), 36)
	keys := make([]string, probeKeys)
	for i := range keys {
		keys[i] = fmt.Sprintf(form, p.common.keyHead, value, i)
	}
	if err := p.write(ctx, keys, value); err != nil {
		return 0, err
	}
	read := p.newRead(ctx, keys)
	// The scripts that rely on the proof are sent in pipelines. This one is too, because newer
	// versions of go-redis have separate connections for pipelines.
	if err := cmp.Or(p.node.processAll(ctx, []redis.Cmder{read}), read.Err()); err != nil {
		return 0, err
	}
	switch found := read.Val(); {
	case len(found) != probeKeys || found[0] != value: // even a proxy finds the first key
		return 0, errNoProbeKeys
	case slices.ContainsFunc(found, func(f string) bool { return f != value }):
		return 0, errSeveralServers
	}
	return read.made, nil
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

// probeRead is the command that reads the probe keys.
type probeRead struct {
	*redis.StringSliceCmd
	sent   sendState
	client *redis.Client
	made   uint32 // how many connections had been made when the command was written
}

func (p *oneServerProof) newRead(ctx context.Context, keys []string) *probeRead {
	args := []any{"eval", "return redis.call('MGET', unpack(KEYS))", len(keys)}
	for _, key := range keys {
		args = append(args, key)
	}
	return &probeRead{StringSliceCmd: redis.NewStringSliceCmd(ctx, args...), client: p.client}
}

// NoRetry implements redis.Cmder.
func (r *probeRead) NoRetry() bool { return true }

// Args implements redis.Cmder. go-redis calls it when it has a connection for the command.
func (r *probeRead) Args() []any {
	r.sent.written = true
	r.made = connsMade(r.client)
	return r.StringSliceCmd.Args()
}

func (r *probeRead) state() *sendState { return &r.sent }
