package outgoing

import (
	"net/http"
	"slices"
	"time"

	"github.com/dunglas/httpsfv"

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
		list, err := httpsfv.UnmarshalList(fields(h, name))
		if err != nil {
			continue
		}
		for _, member := range list {
			if p, ok := policyOf(member); ok {
				found = append(found, p)
			}
		}
	}
	return found
}

// policyOf reads one policy, and reports whether it is a quota of calls.
func policyOf(member httpsfv.Member) (p policy, ok bool) {
	item, ok := member.(httpsfv.Item)
	if !ok {
		return p, false
	}
	calls := param(item, "q")
	if calls == nil {
		calls = item.Value
	}
	n, isNumber := calls.(int64)
	seconds, hasWindow := param(item, "w").(int64)
	unit := param(item, "qu")
	ok = isNumber && hasWindow && n > 0 && seconds > 0 && (unit == nil || unit == "requests")
	return policy{n, inSeconds(float64(seconds))}, ok
}

func param(item httpsfv.Item, name string) any {
	value, _ := item.Params.Get(name)
	return value
}

// adapt lowers the pace of a key to what the server says it allows, but never raises it above the
// rule's. A policy with a longer window than the rule's is not spread over that window: what is left of
// it is meant to be used at any time.
func (t *Turns) adapt(key string, policies []policy) {
	own := t.prepared.Counted.Limits[0]
	window := micros(own.Compiled.Window)
	policies = slices.DeleteFunc(policies, func(p policy) bool { return p.window > window })
	if len(policies) == 0 {
		return
	}
	rate, burst := float64(own.Max), float64(own.Compiled.Max)
	scale := 1.0
	for _, p := range policies {
		// A bucket lets through its burst and what comes back in a window. It is one call fewer than
		// the server allows, because a server announces a pause with the last one.
		most := burst + rate*p.window.Seconds()/window.Seconds()
		scale = min(scale, float64(p.calls-1)/most)
	}
	announced := (*engine.Limit)(nil)
	if scale < 1 {
		announced = slowed(own, scale, policies)
	}
	t.paces.entry(key).announce(announced, time.Now())
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
	return withRate(own, rate, float64(burst))
}
