package nethttplimit

import (
	"net/http"

	"github.com/accesslimit/accesslimit/core"
)

// ForwardAuth returns a handler for proxies that ask before they forward a call, as nginx does by
// auth_request, and Caddy and Traefik by forward_auth. So calls of services in any language are
// limited. examples/PROXIES.md has configurations.
//
// The proxy sends the method, the target and the host of the call in X-Forwarded-Method,
// X-Forwarded-Uri and X-Forwarded-Host, and the caller's address as core.ClientIP says. The reply is 200
// with the RateLimit headers, or the refusal, such as 429 with Retry-After. Proxies in
// ClientIP.TrustedProxies are believed, and anybody else gets 403. See core.Check.ForwardAuth.
//
// ForwardAuth panics with a *core.RuleError if there are no TrustedProxies, or if a rule has CostBySize,
// because the length of the body is not known. Rules with Count or Concurrency make no core.Check,
// because the end of the call is not known.
//
// Danger: serve it where only proxies can reach it. A client whose own calls a trusted proxy forwards to
// this handler chooses what is counted.
func ForwardAuth(check *core.Check) http.Handler {
	decide, err := check.ForwardAuth()
	if err != nil {
		panic(err)
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if carryOut(w, show(w, r, nil, decide)) {
			w.Header().Set("Cache-Control", "no-store")
			w.WriteHeader(http.StatusOK)
		}
	})
}
