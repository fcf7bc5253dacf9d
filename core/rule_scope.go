package core

import (
	"github.com/accesslimit/accesslimit/core/adapter"
	"github.com/accesslimit/accesslimit/core/internal/operatorlog"
	"github.com/accesslimit/accesslimit/core/internal/pathmatch"
)

// inScope reports whether the rule applies to a call, by its Methods, Paths and Except. The first
// rule that has patterns fills in the readings of the call's path.
func (b *boundRule) inScope(v adapter.View, readings *pathmatch.Readings, log *operatorlog.Log) bool {
	s := &b.scope
	if s.HasMethods() && !s.MatchesMethod(v.Method()) {
		return false
	}
	if !s.HasPatterns() {
		return true
	}
	if readings.Empty() {
		readings.Read(v.Route(), v.Path(), loosenessOf(v))
	}
	if !s.MatchesPath(readings) {
		b.lookForParameters(v, log)
		return false
	}
	return true
}

// maxParameterLooks is the number of calls outside its paths after which a rule no longer looks for
// parameters that its patterns spell otherwise than the router.
const maxParameterLooks = 1000

// lookForParameters warns if the rule does not apply to a call only because the route spells its
// parameters in another way, such as /users/{id} for /users/:id.
func (b *boundRule) lookForParameters(v adapter.View, log *operatorlog.Log) {
	if !b.scope.NamesParameters() || b.parameterLooks.Load() >= maxParameterLooks {
		return
	}
	b.parameterLooks.Add(1)
	if pattern := b.scope.Misspelled(v.Route()); pattern != "" {
		b.parameterLooks.Store(maxParameterLooks)
		log.ParameterMisspelled(b.namedFor(v, log).name, pattern, v.Route())
	}
}

// warnOfNobody warns of rules that limit nobody, because no call is in their scope, and of methods that
// may be misspelled.
func warnOfNobody(log *operatorlog.Log, rules []*boundRule) {
	for _, rule := range rules {
		if why := rule.scope.Never(); why != "" {
			log.LimitsNobody(rule.displayName(), why)
		} else if methods := rule.scope.Unregistered(); len(methods) > 0 {
			log.MethodsUnknown(rule.displayName(), methods)
		}
	}
}

func loosenessOf(v adapter.View) (l pathmatch.Looseness) {
	view, ok := v.(adapter.LooseView)
	if !ok {
		return 0
	}
	anyCase, anySlash := view.Loose()
	if anyCase {
		l |= pathmatch.AnyCase
	}
	if anySlash {
		l |= pathmatch.AnySlash
	}
	return l
}

// checkScope checks Paths, Except and Methods.
func (c *ruleCheck) checkScope() {
	for _, list := range [...]struct {
		field, code string
		texts       []string
		check       func(string) string
	}{
		{"Paths", "path_pattern", c.Paths, pathmatch.CheckPattern},
		{"Except", "path_pattern", c.Except, pathmatch.CheckPattern},
		{"Methods", "method", c.Methods, pathmatch.CheckMethod},
	} {
		for _, text := range list.texts {
			if why := list.check(text); why != "" {
				c.add(list.field, list.code, text, why)
			}
		}
	}
}
