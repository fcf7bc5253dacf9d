package core

import (
	"net/http"

	"github.com/accesslimit/accesslimit/core/adapter"
	"github.com/accesslimit/accesslimit/core/internal/authrequest"
	"github.com/accesslimit/accesslimit/core/internal/clientip"
	"github.com/accesslimit/accesslimit/core/internal/problem"
)

// ForwardAuth returns a function that decides calls which a proxy asks about before it forwards them.
// It is for authors of adapters: nethttplimit.ForwardAuth is the handler. Its View is that of the
// proxy's request. The headers X-Forwarded-Method, X-Forwarded-Uri and X-Forwarded-Host say which call
// it is about; each must be there once, but the last may be missing if the call has no host. The
// caller's address is found as [ClientIP] says.
//
// A peer that is not in ClientIP.TrustedProxies gets 403, and so does a request that does not say which
// call it is about. Nothing is charged then, and the log says so, at most once a minute. A refusal
// never has a status of 200 to 299, whatever [Options].Reply returns, because proxies take that for
// permission.
//
// The route is not known, so a rule needs a Name or Paths. The router behind the proxy is not known
// either, so paths match in any case, with or without a slash at their end. Exceptions match only as
// they are spelled.
//
// The length of the body is not known, so by [CostBySize] a call costs as much as fits into the rule's
// smallest limit. The error is a *[RuleError] if there are no TrustedProxies or, here and in a later
// [RuleSet.Replace], if a rule has an Estimate, because nobody settles the call.
func (c *Check) ForwardAuth() (decide func(request adapter.View) Answer, err error) {
	g := c.madeGuard()
	switch {
	case !g.made():
		return nil, errZeroGuard
	case g.front.ClientIPs.TrustsNobody():
		return nil, &RuleError{Field: "Options.ClientIP.TrustedProxies", Value: []string(nil), Why: "must name the proxies that ask"}
	}
	g.forwardAuth.Store(true)
	if wrong := g.checkForwardAuth(g.bound()); wrong != nil {
		g.forwardAuth.Store(false) // the check still works in a handler
		return nil, joinRuleErrors(wrong)
	}
	return g.answerProxy, nil
}

// answerProxy decides the call that a proxy asks about.
func (g *Guard) answerProxy(request adapter.View) Answer {
	peer := clientip.Plain(request.RemoteAddr())
	if !g.front.ClientIPs.Trusts(peer) {
		g.front.Log.UntrustedAuthRequest(peer)
		return notAnswered("Only a proxy of this service may ask.")
	}
	v, why := authrequest.Call(request)
	if why != "" {
		g.front.Log.UnreadableAuthRequest(peer, why)
		return notAnswered("It is not known which call this is about.")
	}
	answer := g.check(v, "")
	if r := answer.Refusal; r != nil && r.Status < http.StatusMultipleChoices {
		r.Status = replies[r.Decision.Reason].status
	}
	return answer
}

// notAnswered returns the refusal of a request that is about no call of the service's.
func notAnswered(message string) Answer {
	body := problem.Details{Status: http.StatusForbidden, Message: message}
	return Answer{Refusal: &Refusal{
		Status: http.StatusForbidden, Code: codePermissionDenied, ContentType: problem.ContentType, Body: body.Body(), Message: message,
	}}
}

// checkForwardAuth returns what the rules cannot do if a proxy asks about calls.
func (a *attachment) checkForwardAuth(rules []*boundRule) (wrong []*RuleError) {
	if !a.forwardAuth.Load() {
		return nil
	}
	for _, rule := range rules {
		if rule.terms != nil {
			wrong = append(wrong, rule.wrong("Estimate", "estimate_in_forward_auth", "a function", "needs a handler that settles the call, which a proxy that asks first does not have"))
		}
	}
	return wrong
}
