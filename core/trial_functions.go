package core

import (
	"fmt"
	"strings"

	"github.com/accesslimit/accesslimit/core/internal/limiter"
)

// traced returns the rule under its name for a call, with functions that run once. It notes their
// results and errors. A panic is an error, too.
func (t *trial) traced(r *triedRule) *boundRule {
	rule, c, p := r.rule, t.call, &r.prepared
	traced := &boundRule{
		Rule: rule.Rule, limits: rule.limits, ban: rule.ban, suffix: rule.suffix, fixed: r.named, inHandler: rule.inHandler,
	}
	if rule.Skip != nil {
		skip := once(p, "Skip", func(r Request) (bool, error) { return rule.Skip(r), nil })
		traced.Skip = func(r Request) bool {
			skips, _ := skip(r)
			return skips
		}
	}
	if rule.Cost != nil {
		traced.Cost = t.tracedCost(p, rule.Cost)
	}
	if rule.Key != nil {
		traced.Key = once(p, "Key", rule.Key)
	}
	if rule.Plan != nil {
		traced.Plan = once(p, "Plan", func(req Request) (string, error) {
			name, err := rule.Plan(req)
			if err != nil {
				return "", err
			}
			p.Plan = strings.Clone(name)
			_, err = r.named.plan(name)
			return name, err
		})
	}
	if rule.LimitFor != nil {
		a := &appliedRule{rule: rule, named: r.named}
		traced.LimitFor = once(p, "LimitFor", func(req Request) (Limit, error) {
			limit, err := rule.LimitFor(req)
			if err == nil {
				_, err = c.computed(a, limit)
			}
			return limit, err
		})
	}
	return traced
}

// tracedCost returns a Cost that runs once. A negative cost counts as 1, as in calls.
func (t *trial) tracedCost(p *limiter.Prepared, cost func(Request) int) func(Request) int {
	c, bySize := t.call, false
	traced := once(p, "Cost", func(r Request) (int, error) {
		n := cost(r)
		if bySize = c.bySize; n < 0 {
			p.Failures = append(p.Failures, limiter.Failure{Function: "Cost", Err: fmt.Errorf("returned %d, which counts as 1", n)})
			n = 1
		}
		return n, nil
	})
	return func(r Request) int {
		n, _ := traced(r)
		c.bySize = bySize
		return n
	}
}

// once returns a function of a rule that runs once. Later it returns the same again.
func once[T any](p *limiter.Prepared, name string, do func(Request) (T, error)) func(Request) (T, error) {
	var result T
	var err error
	ran := false
	return func(r Request) (T, error) {
		if ran {
			return result, err
		}
		ran = true
		failed := tried(name, func() (failed error) {
			result, failed = do(r)
			return failed
		})
		if failed != nil {
			err, p.Failures = failed.Err, append(p.Failures, *failed)
		}
		return result, err
	}
}

// tried calls a function of the service, and returns why it failed, or nil. If it panics, that is why.
func tried(name string, do func() error) (failed *limiter.Failure) {
	defer func() {
		if p := recover(); p != nil {
			failed = &limiter.Failure{Function: name, Err: fmt.Errorf("panicked: %v", p), Panicked: true}
		}
	}()
	if err := do(); err != nil {
		return &limiter.Failure{Function: name, Err: err}
	}
	return nil
}
