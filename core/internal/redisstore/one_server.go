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

// oneServerProof is the proof that what is behind an address is one server that holds all keys, so
// that one script can decide over different keys. Behind an address there can also be a proxy,
// which spreads the keys over several servers. Some proxies send a script to the server of its
// first key, where the others are not found: no error would show that.
//
// The proof is made of probe keys, which are written one by one and read by one script. It is good
// for the connections that there were when it was made. A later connection may lead elsewhere.
// That those at one time lead to the same place is not tested: if they did not, no count would be
// right anyway.
type oneServerProof struct {
	node   pipelineNode
	client *redis.Client // whose pool makes the connections
	common *common
	addr   string

	mu      sync.Mutex
	running bool
	retryAt time.Time // no proof is tried before
	renewAt time.Time // the proof that there is gets renewed then
	ends    time.Time // of the proof that there is
	made    uint32    // how many connections had been made then
	refused string    // why there was none, as reported last
}

const (
	// probeKeys is how many keys are probed. Of a proxy that has one tenth of the keys on another
	// server, 64 keys are all on one server once in 800 times, and 16 keys once in 5 times.
	probeKeys = 64
	// probeLife is for how long the probe keys exist.
	probeLife = 5 * time.Second
	// proofLife is how long a proof is good, and renewProof when it is renewed: what is behind a
	// proxy may change without a new connection.
	proofLife, renewProof = 20 * time.Second, 10 * time.Second
	// repeatProof is the pause after a proof, which every new connection ends. retryProof is the pause
	// after one that failed on its way, and recheckProof after one that showed several servers or a
	// missing right.
	repeatProof, retryProof, recheckProof = 50 * time.Millisecond, time.Second, time.Minute
)

var (
	// errSeveralServers is the finding that the keys are not all on one server.
	errSeveralServers = errors.New("a script did not find all of the keys that were just written, as with a proxy that spreads keys over servers")
	// errNoProbeKeys shows nothing: the server may have been stopped for too long, or flushed.
	errNoProbeKeys = errors.New("the keys that were just written are gone")
)

// holds reports whether there is a proof for all connections so far.
func (p *oneServerProof) holds() bool {
	made := countConns(p.client).made()
	p.mu.Lock()
	defer p.mu.Unlock()
	return made == p.made && time.Now().Before(p.ends)
}

// wanted is holds for a pipeline that would use the proof. It starts to make one, or to renew it,
// in the background. A nil proof never holds.
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

// refute ends the proof for a while, because a script cannot read several keys, and reports why.
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
	// In a pipeline, as the scripts that the proof is for: newer versions of go-redis have other
	// connections for those.
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

// write sets the keys to the value.
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
	made   uint32 // connections, when the command was written
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

// Args implements redis.Cmder. go-redis asks for the arguments when it has a connection.
func (r *probeRead) Args() []any {
	r.sent.markWritten()
	r.made = connsMade(r.client)
	return r.StringSliceCmd.Args()
}

func (r *probeRead) state() *sendState { return &r.sent }
