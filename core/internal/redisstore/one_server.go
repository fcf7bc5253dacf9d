package redisstore

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/accesslimit/accesslimit/core/internal/failure"
)

// errUnproved ends a call that was not decided because its keys have different hash tags, and the server
// refuted that it holds them all.
var errUnproved = errors.New("one server does not hold all keys")

// oneServerProof is the proof that an address belongs to one server that holds all keys, so that
// one script can decide calls on different keys. The address may also be that of a proxy, which
// spreads the keys over several servers. Some proxies send a script to the server of its first key.
// That server does not have the other keys, and no error shows it.
//
// To make the proof, probe keys are written one by one, and read by one script. The proof is made at first
// use, again after a trip without an answer, because the connection may be another one then, and every few
// seconds while it is used, because an address may lead elsewhere without any failure. It is not
// tested whether all connections of one moment lead to the same server. If they did not, no count would be
// right anyway.
type oneServerProof struct {
	node   pipelineNode
	common *common
	addr   string

	mu      sync.Mutex
	attempt chan struct{} // closed when the current attempt is over; nil if none runs
	retryAt time.Time     // the earliest time to try again after a failure
	renewAt time.Time     // when to renew the present proof
	ends    time.Time     // when the present proof ends
	ended   int           // how often it was ended early, which an attempt that runs cannot make up for
	refused string        // the reason reported last why there is no proof
}

const (
	// A proof is valid for proofLife and renewed after renewProof.
	proofLife, renewProof = 20 * time.Second, 10 * time.Second
	// If the server could not be reached, the next attempt is made after retryProof. If there are several
	// servers, or a right is missing, it is made after recheckProof.
	retryProof, recheckProof = time.Second, time.Minute
)

// wanted reports whether the proof is valid. If necessary, it starts to make or renew the proof in the
// background. A nil proof is never valid.
func (p *oneServerProof) wanted() bool {
	holds, _ := p.start()
	return holds
}

// await is wanted for a caller that needs the proof. It waits until the proof is made or cannot
// be made, or the context ends.
func (p *oneServerProof) await(ctx context.Context) bool {
	for ctx.Err() == nil {
		holds, attempt := p.start()
		if holds || attempt == nil {
			return holds
		}
		select {
		case <-attempt:
		case <-ctx.Done():
		}
	}
	return false
}

// start starts an attempt to make or renew the proof, if that is necessary and none runs. It
// reports whether the proof is valid, and returns the running attempt or nil.
func (p *oneServerProof) start() (holds bool, attempt <-chan struct{}) {
	if p == nil || p.common.keyHead == "" {
		return false, nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	holds = now.Before(p.ends)
	if p.attempt == nil && !now.Before(p.retryAt) && (!holds || now.After(p.renewAt)) {
		p.attempt = make(chan struct{})
		if !p.common.inBackground(p.make) {
			p.attempt = nil
		}
	}
	return holds, p.attempt
}

// make tries to make the proof.
func (p *oneServerProof) make() {
	p.mu.Lock()
	ended := p.ended
	p.mu.Unlock()
	err := p.probe(differentTags)
	if errors.Is(err, errSeveralServers) || isManyRefused(err) {
		p.refute(err)
		p.common.inBackground(p.checkTags)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	switch {
	case err == nil && p.ended != ended:
	case err == nil:
		p.renewAt, p.ends, p.refused = now.Add(renewProof), now.Add(proofLife), ""
	case now.After(p.retryAt):
		p.retryAt = now.Add(retryProof)
	}
	close(p.attempt)
	p.attempt = nil
}

// refute ends the proof because a script could not read several keys, and reports why. The next
// attempt is made after recheckProof.
func (p *oneServerProof) refute(why error) {
	text := failure.Text(why)
	p.mu.Lock()
	reported := p.refused == text
	p.ends, p.retryAt, p.refused = time.Time{}, time.Now().Add(recheckProof), text
	p.ended++
	p.mu.Unlock()
	if !reported {
		p.common.inBackground(func() { p.common.listener.OneKeyPerScript(p.addr, why) })
	}
}

// checkTags reports a proxy that spreads even keys with the same hash tag over servers.
func (p *oneServerProof) checkTags() {
	if err := p.probe(sameTag); errors.Is(err, errSeveralServers) || isReply(err, "CROSSSLOT") {
		p.common.listener.TagsIgnored(p.addr)
	}
}

// end ends the proof until another one is made.
func (p *oneServerProof) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ends = time.Time{}
	p.ended++
}

// isRefuted reports whether the server refused a script without running it, because it does not
// serve all of the keys.
func isRefuted(err error) bool { return isReply(err, "CROSSSLOT") || isRedirect(err) }
