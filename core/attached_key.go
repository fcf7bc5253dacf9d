package core

import (
	"cmp"
	"reflect"
)

// plainKeys are the names of key functions, as a file with rules spells them, by their addresses.
var plainKeys = map[uintptr]string{
	addressOf(ByIP): "ip", addressOf(ByUser): "user", addressOf(ByHost): "host", addressOf(ByRoute): "route", addressOf(Global): "global",
}

func addressOf(key KeyFunc) uintptr { return reflect.ValueOf(key).Pointer() }

// countsBy returns AttachedRule.CountsBy. written is the rule's key in a file, or "".
func (b *boundRule) countsBy(written string) string {
	switch {
	case b.Key != nil:
		return cmp.Or(written, plainKeys[addressOf(b.Key)])
	case b.NeedLogin:
		return "user"
	default:
		return "ip"
	}
}

// writtenKey returns the key of a rule of the guard as it is written in a file, or "".
func (a *attachment) writtenKey(rule string) string {
	if followed := a.following.Load(); followed != nil && followed.key != nil {
		return followed.key(rule)
	}
	return ""
}
