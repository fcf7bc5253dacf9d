package outgoing

import (
	"maps"
	"sync"
	"time"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
	"github.com/accesslimit/accesslimit/core/internal/engine"
)

// paces are the limits of keys whose server seems to allow less than the rule. Each process learns them
// from the responses that it gets, and from the pauses that it sees. They count in the same buckets as
// the rule's limit, because a lower rate takes effect at once, even while other processes count by
// another one.
type paces struct {
	mu    sync.RWMutex
	byKey map[string]*pace
}

const (
	// maxPaces bounds how many keys have a pace of their own.
	maxPaces = 10_000
	// paceLasts is how long a pace that was announced counts unless the server says the same again.
	paceLasts = time.Minute
)

// of returns the limit of a key, or the rule's own.
func (p *paces) of(key string, own *engine.Limit) *engine.Limit {
	if learned := p.find(key); learned != nil {
		return learned.limit(own, time.Now())
	}
	return own
}

// find returns the pace of a key, or nil if nothing was learned about it.
func (p *paces) find(key string) *pace {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return p.byKey[key]
}

// entry returns the pace of a key, which may be a new one.
func (p *paces) entry(key string) *pace {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.byKey == nil {
		p.byKey = make(map[string]*pace)
	}
	if p.byKey[key] == nil {
		if len(p.byKey) >= maxPaces {
			p.makeRoom(time.Now())
		}
		p.byKey[key] = new(pace)
	}
	return p.byKey[key]
}

// makeRoom forgets the paces that no longer count. If nearly all do, it forgets others too, up to a
// tenth, so that it runs seldom.
func (p *paces) makeRoom(now time.Time) {
	maps.DeleteFunc(p.byKey, func(_ string, of *pace) bool { return of.isOver(now) })
	for key := range p.byKey {
		if len(p.byKey) <= maxPaces*9/10 {
			return
		}
		delete(p.byKey, key)
	}
}

// pace holds how much a server is known to allow: as much as it announces or, if it announces nothing,
// as much as its pauses tell.
type pace struct {
	mu        sync.Mutex
	announced *engine.Limit // nil: not less than the rule
	until     time.Time     // how long the announcement counts
	congestion
	steps stepLimit
}

// stepLimit is the limit for a step of the congestion's pace.
type stepLimit struct {
	step  int
	limit *engine.Limit
}

// limit returns the limit that is in force.
func (p *pace) limit(own *engine.Limit, now time.Time) *engine.Limit {
	p.mu.Lock()
	defer p.mu.Unlock()
	if now.Before(p.until) {
		if p.announced == nil {
			return own
		}
		return p.announced
	}
	step := p.step(now)
	if step == 0 {
		return own
	}
	if p.steps.step != step {
		p.steps = stepLimit{step, fractionOf(own, fraction(step))}
	}
	return p.steps.limit
}

// announce sets what the server has announced. nil stands for the rule's own limit.
func (p *pace) announce(limit *engine.Limit, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.announced, p.until, p.congestion = limit, now.Add(paceLasts), congestion{}
}

// paused notes a pause of the key's calls, unless the server has announced what it allows.
func (p *pace) paused(now time.Time, lasts time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !now.Before(p.until) {
		p.congestion.paused(now, lasts)
	}
}

func (p *pace) isOver(now time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return !now.Before(p.until) && p.step(now) == 0
}

// fractionOf returns a limit with a fraction of the rate and the burst of another.
func fractionOf(own *engine.Limit, part float64) *engine.Limit {
	return withRate(own, float64(own.Max)*part, float64(own.Compiled.Max)*part)
}

// withRate returns a limit with the window of another, but so many calls in it, and another burst. Both
// are rounded down, but are at least one.
func withRate(own *engine.Limit, calls, burst float64) *engine.Limit {
	most := max(1, int64(calls))
	limit, err := algorithm.Bucketed(most, own.Compiled.Window, max(1, int64(burst)))
	if err != nil {
		return own
	}
	return &engine.Limit{Compiled: &limit, Max: most, KeyTail: own.KeyTail}
}
