package outgoing

import (
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/dunglas/httpsfv"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
	"github.com/accesslimit/accesslimit/core/internal/engine"
)

// policy is what a server says it allows in each window.
type policy struct {
	calls  int64
	window time.Duration
}

// policiesOf reads RateLimit-Policy in the forms of the drafts, "burst";q=100;w=60 and 100;w=60, and
// RateLimit-Limit, which may have the latter too. Quotas of anything but calls are left out.
func policiesOf(h http.Header) (found []policy) {
	for _, name := range [...]string{"RateLimit-Policy", "RateLimit-Limit"} {
		list, err := httpsfv.UnmarshalList(h.Values(name))
		if err != nil {
			continue
		}
		for _, member := range list {
			item, ok := member.(httpsfv.Item)
			if !ok {
				continue
			}
			calls, window := item.Value, param(item, "w")
			if q := param(item, "q"); q != nil {
				calls = q
			}
			unit := param(item, "qu")
			n, isNumber := calls.(int64)
			seconds, hasWindow := window.(int64)
			if isNumber && hasWindow && n > 0 && seconds > 0 && (unit == nil || unit == "requests") {
				found = append(found, policy{n, inSeconds(float64(seconds))})
			}
		}
	}
	return found
}

func param(item httpsfv.Item, name string) any {
	value, _ := item.Params.Get(name)
	return value
}

// paces are the limits of keys whose server allows less than the rule. Each process learns them from
// the responses that it gets. They count in the same buckets as the rule's limit, because a lower rate
// takes effect at once, even while other processes count by another one.
type paces struct {
	mu    sync.RWMutex
	byKey map[string]*pace
}

type pace struct {
	limit *engine.Limit
	ends  time.Time
}

const (
	// maxPaces bounds how many keys have a pace of their own.
	maxPaces = 10_000
	// paceLasts is how long a pace counts unless the server says the same again.
	paceLasts = time.Minute
)

// of returns the limit of a key, or the rule's own.
func (p *paces) of(key string, own *engine.Limit) *engine.Limit {
	p.mu.RLock()
	defer p.mu.RUnlock()
	if learned := p.byKey[key]; learned != nil && time.Now().Before(learned.ends) {
		return learned.limit
	}
	return own
}

// set sets the limit of a key.
func (p *paces) set(key string, limit *engine.Limit) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.byKey == nil {
		p.byKey = make(map[string]*pace)
	}
	if p.byKey[key] == nil && len(p.byKey) >= maxPaces {
		p.makeRoom(time.Now())
	}
	p.byKey[key] = &pace{limit, time.Now().Add(paceLasts)}
}

// makeRoom forgets the paces that no longer count, or one if all do.
func (p *paces) makeRoom(now time.Time) {
	maps.DeleteFunc(p.byKey, func(_ string, of *pace) bool { return !now.Before(of.ends) })
	for key := range p.byKey {
		if len(p.byKey) >= maxPaces {
			delete(p.byKey, key)
		}
		return
	}
}

// forget lets a key have the rule's own limit.
func (p *paces) forget(key string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.byKey, key)
}

// adapt lowers the pace of a key to what the server says it allows, but never raises it above the
// rule's. A policy with a longer window than the rule's is not spread over that window: what is left of
// it is meant to be used at any time.
func (t *Turns) adapt(key string, policies []policy) {
	own := t.of.Counted.Limits[0]
	window := micros(own.Compiled.Window)
	policies = slices.DeleteFunc(policies, func(p policy) bool { return p.window > window })
	if len(policies) == 0 {
		return
	}
	rate, burst := float64(own.Max), float64(own.Compiled.Max)
	scale := 1.0
	for _, p := range policies {
		// A bucket lets through its burst and what comes back in a window. One call less than the
		// server allows is sent, because it would announce a pause with the last one.
		most := burst + rate*p.window.Seconds()/window.Seconds()
		scale = min(scale, float64(p.calls-1)/most)
	}
	if scale < 1 {
		t.paces.set(key, slowed(own, scale, policies))
	} else if t.paces.of(key, own) != own {
		t.paces.forget(key)
	}
}

// slowed returns a limit with a fraction of the burst of another, and with as much of its rate as the
// policies leave beside that. A bucket cannot be smaller than one call, so a fraction of the rate would
// be far slower than a server that allows few calls.
func slowed(own *engine.Limit, scale float64, policies []policy) *engine.Limit {
	burst := max(1, int64(float64(own.Compiled.Max)*scale))
	rate := float64(own.Max)
	for _, p := range policies {
		rate = min(rate, float64(max(1, p.calls-1-burst))*micros(own.Compiled.Window).Seconds()/p.window.Seconds())
	}
	calls := max(1, int64(rate))
	limit, err := algorithm.Bucketed(calls, own.Compiled.Window, burst)
	if err != nil {
		return own
	}
	return &engine.Limit{Compiled: &limit, Max: calls, KeyTail: own.KeyTail}
}
