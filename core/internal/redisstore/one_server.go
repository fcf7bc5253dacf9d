package redisstore

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/accesslimit/accesslimit/core/internal/failure"
	"github.com/redis/go-redis/v9"
)

// oneServerProof is the proof that an address belongs to one server that holds all keys, so that
// one script can decide calls on different keys. The address may also be that of a proxy, which
// spreads the keys over several servers. Some proxies send a script to the server of its first key.
// That server does not have the other keys, and no error shows it.
//
// To make the proof, probe keys are written one by one, and read by one script. The proof is valid
// for the connections that existed when it was made. A later connection may lead to another server.
// It is not tested whether all connections of one moment lead to the same server. If they did not,
// no count would be right anyway.
type oneServerProof struct {
	node   pipelineNode
	client *redis.Client // whose pool makes the connections
	common *common
	addr   string

	mu       sync.Mutex
	attempt  chan struct{} // closed when the current attempt is over; nil if none runs
	retryAt  time.Time     // the earliest time to try again after a failure
	repeatAt time.Time     // the earliest time to try again in the background after a success
	renewAt  time.Time     // when to renew the present proof
	ends     time.Time     // when the present proof ends
	made     uint32        // how many connections had been made by the time of the present proof
	refused  string        // the reason reported last why there is no proof
}

const (
	// A proof is valid for proofLife and renewed after renewProof, because a proxy may change its
	// servers without a new connection.
	proofLife, renewProof = 20 * time.Second, 10 * time.Second
	// After a proof, the next one is not made before repeatProof, however many connections are made
	// meanwhile, unless a call waits for it. If the server could not be reached, the pause is
	// retryProof. If there are several servers, or a right is missing, it is recheckProof.
	repeatProof, retryProof, recheckProof = 50 * time.Millisecond, time.Second, time.Minute
)

// holds reports whether the proof is valid for all connections made so far.
func (p *oneServerProof) holds() bool {
	made := countConns(p.client).made()
	p.mu.Lock()
	defer p.mu.Unlock()
	return made == p.made && time.Now().Before(p.ends)
}

// wanted returns holds for a caller that would like to use the proof. If necessary, it starts to
// make or renew the proof in the background. A nil proof never holds.
func (p *oneServerProof) wanted() bool {
	holds, _ := p.start(false)
	return holds
}

// await returns holds for a caller that needs the proof. It waits until the proof is made or cannot
// be made, or the context ends.
func (p *oneServerProof) await(ctx context.Context) bool {
	for ctx.Err() == nil {
		holds, attempt := p.start(true)
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
// returns holds, and the running attempt or nil.
func (p *oneServerProof) start(urgent bool) (holds bool, attempt <-chan struct{}) {
	if p == nil || p.common.keyHead == "" {
		return false, nil
	}
	holds = p.holds()
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	pauses := now.Before(p.retryAt) || !urgent && now.Before(p.repeatAt)
	if p.attempt == nil && !pauses && (!holds || now.After(p.renewAt)) {
		p.attempt = make(chan struct{})
		if !p.common.inBackground(p.make) {
			p.attempt = nil
		}
	}
	return holds, p.attempt
}

// make tries to make the proof.
func (p *oneServerProof) make() {
	made, err := p.probe(differentTags)
	if errors.Is(err, errSeveralServers) || isManyRefused(err) {
		p.refute(err)
		p.common.inBackground(p.checkTags)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	switch {
	case err == nil:
		p.made, p.renewAt, p.ends, p.refused = made, now.Add(renewProof), now.Add(proofLife), ""
		p.repeatAt = now.Add(repeatProof)
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
	p.mu.Unlock()
	if !reported {
		p.common.inBackground(func() { p.common.listener.OneKeyPerScript(p.addr, why) })
	}
}

// checkTags reports a proxy that spreads even keys with the same hash tag over servers.
func (p *oneServerProof) checkTags() {
	if _, err := p.probe(sameTag); errors.Is(err, errSeveralServers) || isReply(err, "CROSSSLOT") {
		p.common.listener.TagsIgnored(p.addr)
	}
}

// end ends the proof until another one can be made.
func (p *oneServerProof) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ends = time.Time{}
}
