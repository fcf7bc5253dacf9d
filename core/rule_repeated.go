package core

import "reflect"

// warnOfRepetition logs that a call passes two middlewares with a rule of this name, unless a rule
// of the name counts other subjects.
func (g *registry) warnOfRepetition(rule *boundRule, name string) {
	guards, _ := g.attached.All()
	for _, guard := range guards {
		for _, other := range guard.bound() {
			if other.displayName() == name && !other.inHandler && !other.countsAs(rule) {
				return
			}
		}
	}
	g.log.ChargedTwice(name)
}

// countsAs reports whether two rules of one name count the same subjects, as far as is known.
func (b *boundRule) countsAs(other *boundRule) bool {
	return b.NeedLogin == other.NeedLogin && reflect.ValueOf(b.Key).Pointer() == reflect.ValueOf(other.Key).Pointer()
}
