package core

import (
	"net/http"

	"github.com/accesslimit/accesslimit/core/adapter"
	"github.com/accesslimit/accesslimit/core/internal/limitheader"
)

// OwnLimits is the reply to callers who ask for their own limits. See [Guard.OwnLimits]. To send
// it, an adapter calls SetHeader, and then sends what Reply returns.
type OwnLimits struct {
	// Limits has a Decision for each limit, in the order of the rules: the one that the next call
	// would get if it took one permit, and were no strike of a ban. But Remaining is the number of
	// permits left now.
	Limits []Decision
	// Refusal, if not nil, says why the limits cannot be shown. Limits is empty then.
	Refusal *Refusal

	body []byte // the limits as JSON
}

// SetHeader sets the headers of the reply: Content-Type, Cache-Control, and those of the Refusal.
func (o OwnLimits) SetHeader(w adapter.HeaderWriter) {
	if o.Refusal != nil {
		o.Refusal.SetHeader(w)
		return
	}
	w.Set("Content-Type", jsonType)
	w.Set("Cache-Control", "no-store")
}

// Reply returns the reply in HTTP: 200 and the limits as JSON, or the Refusal.
//
//	{"limits":[{"name":"api","limit":100,"remaining":99,"reset":62,"window":60,"policy":"\"api\";q=100;w=60"}]}
//
// The numbers are those of HeadersDraft10. Times are in seconds. reset is the wait if no
// permit is left, and otherwise the time until all are back. Concurrency has no window, and has a
// reset only while no slot is free. A block without an end has no reset.
func (o OwnLimits) Reply() (status int, contentType string, body []byte) {
	if o.Refusal != nil {
		return o.Refusal.Status, o.Refusal.ContentType, o.Refusal.Body
	}
	return http.StatusOK, jsonType, o.body
}

const jsonType = "application/json"

// OwnLimits returns the limits of the guard's rules as they stand for the caller of v, and charges
// nothing. It does not count as a call, as a strike of a ban, or in Stats. It always asks the
// store, and does so once. The adapters have a handler for it.
//
// Paths, Except and Methods are ignored, because the call is not one of those that the rules limit.
// Skip, Plan, LimitFor and overrides apply. These rules are left out:
//
//   - rules in DryRun, and rules that the caller is exempt from by Skip or Unlimited
//   - rules without a Name or Paths, which count each route by itself
//   - rules whose Key, Plan or LimitFor read the call's route or path, or a parameter that its
//     route does not have, because what they return here is not what they return for a limited call
//   - rules with NeedLogin, if the caller is not logged in
//   - soft rules, if the caller or the rule's subject could not be identified
//   - if the caller is blocked or banned from one of the rules, all others
//
// The Refusal is a 401 if the caller is not logged in and only rules that refuse such calls could be
// shown. It is a 503 if the caller or the subject of a rule that refuses calls could not be identified,
// if the context has ended, or if Redis did not answer, the rule does not CountLocally, and the caller
// is neither banned nor blocked.
//
// Asking is not limited. If strangers can reach the handler, limit it by a rule of its own.
func (g *Guard) OwnLimits(v adapter.View) OwnLimits { return g.ownLimits(v, "") }

// OwnLimits is [Guard.OwnLimits] for the rules of the check. The subject replaces the key of every rule; ""
// keeps each rule's own.
func (c *Check) OwnLimits(v adapter.View, subject string) OwnLimits {
	return c.madeGuard().ownLimits(v, subject)
}

func (g *Guard) ownLimits(v adapter.View, subject string) OwnLimits {
	if !g.made() {
		panic(errZeroGuard)
	}
	asking := &askingView{View: v}
	c := g.front.calls.open(asking)
	defer g.front.calls.close(c)
	rules := g.bound()
	if rules[0].inHandler {
		c.check, c.subject = &g.attachment, subject
	}
	own := c.ownLimits(rules, asking)
	c.decided = true
	return own
}

// askingView is the view of a call that asks for limits. It records whether a rule's functions read
// something that is different in the calls that the rule limits.
type askingView struct {
	adapter.View
	readsRoute bool
}

// Route implements View.
func (v *askingView) Route() string {
	v.readsRoute = true
	return v.View.Route()
}

// Path implements View.
func (v *askingView) Path() string {
	v.readsRoute = true
	return v.View.Path()
}

// Param implements View. The route of the handler may have the parameter too.
func (v *askingView) Param(name string) string {
	value := v.View.Param(name)
	v.readsRoute = v.readsRoute || value == ""
	return value
}

// RouteUnsure implements adapter.UnsureRouteView.
func (v *askingView) RouteUnsure() bool { return isUnsure(v.View) }

// PeerHidden implements adapter.HiddenPeerView.
func (v *askingView) PeerHidden() bool { return hidesPeer(v.View) }

func (c *call) ownLimits(rules []*boundRule, v *askingView) (own OwnLimits) {
	if err := c.Context().Err(); err != nil {
		return OwnLimits{Refusal: c.refuseOwn(ContextEnded, rules[0], err)}
	}
	if c.parts.options.Identify != nil {
		_, _ = c.User() // before the rules, so that what Identify reads is not taken for theirs
	}
	c.shows = true
	c.applyOwn(rules, v)
	needsLogin, stopped, err := c.addRules()
	switch {
	case stopped != nil:
		return OwnLimits{Refusal: c.refuseOwn(IdentifyFailed, stopped.rule, err)}
	case needsLogin != nil && c.Len() == 0 && !c.IsMarked():
		return OwnLimits{Refusal: c.refuseOwn(NotLoggedIn, needsLogin.rule, nil)}
	}
	c.Ask(c.Context()) // a cost of one is never too much
	return c.showOwn()
}

// applyOwn applies the rules to show, for calls of one permit each.
func (c *call) applyOwn(rules []*boundRule, v *askingView) {
	c.LookOnly(true)
	defer func() { c.deciding = nil }()
	for _, rule := range rules {
		if rule.fixed == nil || rule.Mode == DryRun || rule.Skip != nil && c.skips(rule) {
			continue
		}
		a := c.apply(rule, rule.fixed)
		if rule.NeedLogin && c.user == "" { // its functions expect callers who are logged in
			continue
		}
		c.deciding, v.readsRoute = rule.fixed, false
		if a.err, a.known = c.prepare(a, 1), true; v.readsRoute {
			c.rules = c.rules[:a.counted.At]
		}
	}
}

// showOwn returns the store's verdicts as a reply.
func (c *call) showOwn() (own OwnLimits) {
	own.body = append(own.body, `{"limits":[`...)
	if i := c.Ended(); i >= 0 {
		return OwnLimits{Refusal: c.refuseOwn(ContextEnded, c.ruleOf(i).rule, c.Verdict(i).Ended)}
	}
	for i := range c.Len() {
		v := c.Verdict(i)
		switch {
		case v.Err != nil:
			return OwnLimits{Refusal: c.refuseOwn(StoreFailClosed, c.ruleOf(i).rule, v.Err)}
		case c.Unasked(i):
			continue
		}
		if len(own.Limits) > 0 {
			own.body = append(own.body, ',')
		}
		own.Limits = append(own.Limits, Decision{})
		c.fillLimit(&own.Limits[len(own.Limits)-1], i, "")
		told := limitheader.Limit{Policy: &c.preparedAt(i).policy, Counter: c.Counter(i), Verdict: v}
		own.body = told.AppendJSON(own.body)
	}
	own.body = append(own.body, "]}"...)
	return own
}

// refuseOwn returns the reply to a caller whose limits cannot be shown. Nothing is counted, because
// no call was decided.
func (c *call) refuseOwn(reason Reason, rule *boundRule, cause error) *Refusal {
	reason, cause = c.orCallerLeft(reason, rule.displayName(), cause)
	refusal := c.refusal(&Decision{Reason: reason, Rule: rule.displayName(), Limit: rule.limits[0], Source: FromNobody})
	if reason == ContextEnded {
		refusal.endedBy(cause)
	}
	return refusal
}
