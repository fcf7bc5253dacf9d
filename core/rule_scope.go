package core

import "github.com/accesslimit/accesslimit/core/internal/pathmatch"

// inScope reports whether a rule applies to the call, by its Methods, Paths and Except.
func (c *call) inScope(s *pathmatch.Scope) bool {
	if s.HasMethods() && !s.MatchesMethod(c.Method()) {
		return false
	}
	if !s.HasPatterns() {
		return true
	}
	if c.readings.Empty() {
		c.readings.Read(c.Route(), c.Path(), loosenessOf(c.View))
	}
	return s.MatchesPath(&c.readings)
}

func loosenessOf(v View) (l pathmatch.Looseness) {
	view, ok := v.(LooseView)
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

// checkScope returns what is wrong with Paths, Except and Methods, or nil.
func (r *Rule) checkScope() *RuleError {
	for _, list := range [...]struct {
		field    string
		patterns []string
	}{{"Paths", r.Paths}, {"Except", r.Except}} {
		for _, pattern := range list.patterns {
			if why := pathmatch.CheckPattern(pattern); why != "" {
				return r.wrong(list.field, pattern, why)
			}
		}
	}
	for _, method := range r.Methods {
		if why := pathmatch.CheckMethod(method); why != "" {
			return r.wrong("Methods", method, why)
		}
	}
	return nil
}
