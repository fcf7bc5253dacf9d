package outgoing

import (
	"cmp"
	"fmt"
	"net/http"
	"time"

	"github.com/accesslimit/accesslimit/core"
)

// Rule says how often a service may call another one.
type Rule struct {
	// Name is the name in metrics, and on the operators' page. It must be set. Processes whose rules
	// have one name share turns, slots and pauses.
	Name string
	// Limit is the pace for each key: a token bucket, as in core.PerHour(5000).Bucket(50). A server
	// that announces less by RateLimit-Policy, for windows up to that of the Limit, lowers the pace.
	// In each of its windows it gets at most what it allows, the burst included. If it announces
	// nothing, its pauses lower the pace for a minute or two.
	Limit core.Limit
	// InFlight is how many calls of a key may be in flight at once, 1 to 10,000; 0: any number. A
	// call is in flight until the body of its response is closed, or read to its end. The slot of a
	// process that died is free after 30 seconds.
	InFlight int
	// MaxWait is how long a call waits at most, also for the end of a pause; 0: a minute. A call
	// that would have to wait longer, or beyond its context's deadline, gets a *[WaitError] at once.
	MaxWait time.Duration
	// MaxPause is how long a pause lasts at most, whatever the server says; 0: 15 minutes.
	MaxPause time.Duration
	// Key returns whose calls are counted together; nil: [ByCredential]. A refusal of one key
	// never stops another. A Key that returns "" is an error of the call.
	Key func(*http.Request) string
	// Resource returns which of the server's quotas a call uses, if there are several, such as
	// "search"; nil: there is one. If a response names another quota in X-RateLimit-Resource, the pause
	// is for that one. A refusal also pauses the quota of the call.
	Resource func(*http.Request) string
	// Quotas are further headers in which the server says what is left, beside those that are known
	// without it (see OUTGOING.md); nil: none.
	Quotas []Quota
	// Retries is how often a call that the server refused is repeated, if its method is idempotent or
	// it has an Idempotency-Key, and its body can be sent again; 0: never. Danger: a library above
	// that repeats calls too multiplies the attempts.
	Retries int
	// OnStoreError decides while Redis does not answer. The zero policy is core.CountLocally(1): each
	// process keeps the whole limit by itself. Danger: a fleet then exceeds the limit. Set
	// the share of one process instead, as in core.CountLocally(0.1). Pauses that the
	// process knows hold whatever the policy.
	OnStoreError core.StorePolicy
}

// Quota names the headers in which a server says what is left of a quota. The reset is a number of
// seconds, such as 1.5, a duration, such as 6m0s, a time in seconds or milliseconds since 1970, or a
// time by RFC 3339 or in the form of HTTP.
type Quota struct {
	Remaining, Reset string
}

const (
	defaultMaxWait  = time.Minute
	defaultMaxPause = 15 * time.Minute
	// basePause is the first pause after a refusal without a hint.
	basePause = time.Second
	longest   = 366 * 24 * time.Hour
)

// withDefaults returns the rule with its defaults, or what is wrong with it.
func (r Rule) withDefaults() (Rule, error) {
	r.MaxWait, r.MaxPause = cmp.Or(r.MaxWait, defaultMaxWait), cmp.Or(r.MaxPause, defaultMaxPause)
	r.OnStoreError = cmp.Or(r.OnStoreError, core.CountLocally(1))
	if r.Key == nil {
		r.Key = ByCredential
	}
	wrong := func(field string, value any, why string) (Rule, error) {
		return r, &core.RuleError{Rule: r.Name, Field: field, Value: value, Why: why}
	}
	switch {
	case r.Name == "":
		return wrong("Name", r.Name, "must be set: processes with one name share turns")
	case r.InFlight < 0:
		return wrong("InFlight", r.InFlight, "must be 1 to 10,000, or 0 for any number")
	case r.MaxWait < 0 || r.MaxWait > longest:
		return wrong("MaxWait", r.MaxWait, "must be up to 366 days, or 0 for a minute")
	case r.MaxPause < basePause || r.MaxPause > longest:
		return wrong("MaxPause", r.MaxPause, fmt.Sprintf("must be %v to 366 days, or 0 for 15 minutes", basePause))
	case r.Retries < 0:
		return wrong("Retries", r.Retries, "must not be negative")
	}
	return r, nil
}

// counted returns the rule as the limiter counts it.
func (r *Rule) counted() core.Rule {
	counted := core.Rule{Name: r.Name, Limit: r.Limit, OnStoreError: r.OnStoreError}
	if r.InFlight > 0 {
		counted.Also = []core.Limit{core.InFlight(r.InFlight)}
	}
	return counted
}
