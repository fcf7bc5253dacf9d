package core

import (
	"context"
	"net/netip"
	"slices"
	"strings"

	"github.com/accesslimit/accesslimit/core/internal/engine"
	"github.com/accesslimit/accesslimit/core/internal/failure"
	"github.com/accesslimit/accesslimit/core/internal/marks"
	"github.com/accesslimit/accesslimit/core/internal/rediskey"
)

// obey applies the mark of the rule's subject, or of the caller's address, if there is one: the subject
// is blocked or banned, its limits are lifted, or it has others.
func (c *decider) obey(ctx context.Context, a *appliedRule, addr netip.Addr) {
	of, in := a.named.marks, &a.counted
	if !c.outOfTime {
		if err := of.Ask(ctx, in.Subject, addr); err != nil && failure.ClassOf(err) == failure.Timeout {
			c.outOfTime = true // there is none left to ask for other marks or the counters
			c.Fail(err)
		}
	}
	m := of.Find(in.Subject, addr).Mark()
	if m == nil {
		return
	}
	if c.now == 0 { // one time for all rules, so that of two bans the longer one decides
		c.now = c.parts.marks.Now()
	}
	in.Mark, in.Lasts = m, m.Lasts(c.now)
	switch m.Kind {
	case marks.Unlimited:
		in.Own = nil
	case marks.Limited:
		if in.Cost > 0 {
			if a.instead = a.named.limitsOf(m); a.instead == nil {
				c.log.MarkIgnored(a.named.name, m.Limits)
			} else {
				in.Instead = a.instead.counted
			}
		}
	}
}

// addressIn returns the address that a subject is, or the zero Addr.
func addressIn(subject string) netip.Addr {
	if network, ok := marks.Network(subject); ok {
		return network.Addr()
	}
	return netip.Addr{}
}

// markedLimits are the limits that a mark puts in place of all limits of a rule, as the rule counts by
// them.
type markedLimits struct {
	limits  []*ruleLimit
	counted []*engine.Limit
}

// refusesDebt reports whether one of the limits cannot be in debt. It is false for nil.
func (l *markedLimits) refusesDebt() bool {
	return l != nil && slices.ContainsFunc(l.counted, func(of *engine.Limit) bool { return !of.Compiled.CanBeInDebt() })
}

// limitsOf returns the limits of a mark, or nil if they do not suit the rule or the handle. They are
// prepared once for each text.
func (p *namedRule) limitsOf(m *marks.Mark) *markedLimits {
	if known, ok := p.marked.Get(m.Limits); ok {
		return known
	}
	prepared := m.Compiled().([]*preparedLimit)
	if p.one && len(prepared) > 1 || slices.ContainsFunc(prepared, func(of *preparedLimit) bool { return p.accepts(&of.limit) != "" }) {
		return nil
	}
	made := new(markedLimits)
	for _, limit := range p.prepareAll(prepared) {
		made.limits = append(made.limits, limit)
		made.counted = append(made.counted, &limit.counted)
	}
	made, _ = p.marked.Add(m.Limits, made, maxLimits)
	return made
}

// insteadOf returns the limits that a mark puts in place of all others for a subject, or nil. It is for
// operations beside calls, which find what a call has charged.
func (p *namedRule) insteadOf(subject string) *markedLimits {
	m := p.marks.Find([]byte(subject), addressIn(subject)).Other()
	if m == nil || m.Kind != marks.Limited {
		return nil
	}
	return p.limitsOf(m)
}

// CompileLimits implements limiter.Front.
func (f *front) CompileLimits(text string) (any, error) {
	limits, err := parseLimits(text)
	if err != nil {
		return nil, err
	}
	var prepared []*preparedLimit
	for _, limit := range limits {
		of := f.registry.limits.of(limit)
		if of.err != nil {
			return nil, of.err
		}
		prepared = append(prepared, of)
	}
	return prepared, nil
}

// parseLimits reads limits in their text form, separated by commas, such as 500/m, 10000/24h.
func parseLimits(text string) (limits []Limit, err error) {
	for part := range strings.SplitSeq(text, ",") {
		limit, err := ParseLimit(strings.TrimSpace(part))
		switch {
		case err != nil:
			return nil, err
		case limit == Unlimited:
			return nil, &RuleError{Field: "Limits", Value: text, Why: "has unlimited among others"}
		case slices.ContainsFunc(limits, limit.sharesCounter):
			return nil, &RuleError{Field: "Limits", Code: codeSameCounter, Value: text, Why: sameCounter}
		}
		limits = append(limits, limit)
	}
	return limits, nil
}

// strike counts a refusal by the limit at i for the ban of its rule, after the answer.
func (c *decider) strike(i int) {
	a := c.ruleOf(i)
	if a.named.ban == nil || !c.Charging() || c.Limit(i).IsMark {
		return
	}
	var room [rediskey.MaxLen]byte
	c.parts.marks.Strike(rediskey.Append(room[:0], c.parts.engine.KeyHead, a.counted.Subject, a.named.strikeTail), a.named.name, a.counted.Subject, c.Verdict(i).At, a.named.ban, !a.named.tried)
}
