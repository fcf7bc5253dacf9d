package redisstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// oneServerProof is the proof that an address belongs to one server that holds all keys, so that
// one script can decide calls on different keys. The address may also be that of a proxy, which
// spreads the keys over several servers. Some proxies send a script to the server of its first key.
// That server does not have the other keys, and no error shows it.
//
// To make the proof, probe keys are written one by one, and read by one script. The proof is valid
// for the connections that existed when it was made. A later connection may lead to another server.
// It is not tested whether all connections of one moment lead to the same server: if they did not,
// no count would be right anyway.
type oneServerProof struct {
	node   pipelineNode
	client *redis.Client // whose pool makes the connections
	common *common
	addr   string

	mu      sync.Mutex
	running bool
	retryAt time.Time // the earliest time to try again
	renewAt time.Time // when to renew the present proof
	ends    time.Time // when the present proof ends
	made    uint32    // how many connections had been made by the time of the present proof
	refused string    // the reason reported last why there is no proof
}

const (
	// probeKeys is the number of probe keys. If a proxy keeps one tenth of the keys on another
	// server, 64 keys are all on one server once in 800 times, and 16 keys once in 5 times.
	probeKeys = 64
	// probeLife is the time to live of the probe keys.
	probeLife = 5 * time.Second
	// A proof is valid for proofLife and renewed after renewProof, because a proxy may change its
	// servers without a new connection.
	proofLife, renewProof = 20 * time.Second, 10 * time.Second
	// After a proof, the next one is not made before repeatProof, however many connections are made
	// meanwhile. If the server could not be reached, the pause is retryProof. If there are several
	// servers, or a right is missing, it is recheckProof.
	repeatProof, retryProof, recheckProof = 50 * time.Millisecond, time.Second, time.Minute
)

var (
	// errSeveralServers means that the keys are not all on one server.
	errSeveralServers = errors.New("a script did not find all of the keys that were just written, as with a proxy that spreads keys over servers")
	// errNoProbeKeys proves nothing: the server may have been stopped for too long, or flushed.
	errNoProbeKeys = errors.New("the keys that were just written are gone")
)

// holds reports whether the proof is valid for all connections made so far.
func (p *oneServerProof) holds() bool {
	made := countConns(p.client).made()
	p.mu.Lock()
	defer p.mu.Unlock()
	return made == p.made && time.Now().Before(p.ends)
}

// wanted returns holds to a caller that would use the proof. If necessary, it starts to make or to
// renew the proof in the background. A nil proof never holds.
func (p *oneServerProof) wanted() bool {
	if p == nil || p.common.keyHead == "" {
		return false
	}
	holds, now := p.holds(), time.Now()
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.running && now.After(p.retryAt) && (!holds || now.After(p.renewAt)) {
		p.running = p.common.inBackground(p.make)
	}
	return holds
}

// make tries to make the proof.
func (p *oneServerProof) make() {
	made, err := p.probe()
	p.mu.Lock()
	p.running = false
	now := time.Now()
	p.retryAt = now.Add(retryProof)
	if err == nil {
		p.made, p.renewAt, p.ends, p.refused = made, now.Add(renewProof), now.Add(proofLife), ""
		p.retryAt = now.Add(repeatProof)
	}
	p.mu.Unlock()
	if errors.Is(err, errSeveralServers) || isManyRefused(err) {
		p.refute(err)
	}
}

// refute ends the proof because a script could not read several keys, and reports why. No proof is
// tried for recheckProof.
func (p *oneServerProof) refute(why error) {
	p.mu.Lock()
	reported := p.refused == why.Error()
	p.ends, p.retryAt, p.refused = time.Time{}, time.Now().Add(recheckProof), why.Error()
	p.mu.Unlock()
	if !reported {
		p.common.inBackground(func() { p.common.listener.OneKeyPerScript(p.addr, why) })
	}
}

// end ends the proof until another one can be made.
func (p *oneServerProof) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ends = time.Time{}
}

// probe writes the probe keys, each by itself, and reads all of them in one script. It returns how
// many connections had been made when that script was written.
func (p *oneServerProof) probe() (made uint32, err error) {
	ctx, cancel := context.WithTimeout(p.common.closing, p.common.timeout)
	defer cancel()
	value := strconv.FormatUint(rand.Uint64(), 36)
	keys := make([]string, probeKeys)
	for i := range keys {
		keys[i] = fmt.Sprintf("%s~%s-%d}:probe", p.common.keyHead, value, i)
	}
	if err := p.write(ctx, keys, value); err != nil {
		return 0, err
	}
	read := p.newRead(ctx, keys)
	// The scripts that rely on the proof are sent in pipelines. So is this one, because newer
	// versions of go-redis have separate connections for pipelines.
	if err := cmp.Or(p.node.processAll(ctx, []redis.Cmder{read}), read.Err()); err != nil {
		return 0, err
	}
	switch found := read.Val(); {
	case len(found) != probeKeys || found[0] != value: // also a proxy finds the first key
		return 0, errNoProbeKeys
	case slices.ContainsFunc(found, func(f string) bool { return f != value }):
		return 0, errSeveralServers
	}
	return read.made, nil
}

// write sets each key to the value, by a command of its own.
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
	r.sent.markWritten()
	r.made = connsMade(r.client)
	return r.StringSliceCmd.Args()
}

func (r *probeRead) state() *sendState { return &r.sent }
