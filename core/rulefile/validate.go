package rulefile

import (
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/internal/rulefield"
)

// validate adds the mistakes that core finds in the rule.
func (r *ruleReader) validate(limiter *core.Limiter) {
	for _, wrong := range r.rule.Check(limiter) {
		field := fieldOf(wrong.Field)
		if !r.hasError(field.name) {
			at, label := r.find(field, wrong.Code)
			r.failAs(at, label, sentence(wrong), wrong)
		}
	}
}

// fieldPath is a field of a file, or a part of one: a key of a mapping, or an item of a list.
type fieldPath struct {
	name, key string
	item      int // -1 for the whole field
}

// fieldOf returns the field of a file for a field of a core.RuleError: max_count for MaxCount,
// ban.for for Ban.For, plans.free for Plans["free"], the second item of also for Also[1].
func fieldOf(name string) fieldPath {
	field := fieldPath{item: -1}
	outer, inner, _ := strings.Cut(name, ".")
	if open := strings.IndexByte(name, '['); open >= 0 {
		outer, inner = name[:open], strings.TrimSuffix(name[open+1:], "]")
	}
	field.name = rulefield.Snake(outer)
	switch plan, err := strconv.Unquote(inner); {
	case outer == "Limit": // its parts are one text
	case err == nil:
		field.key = plan
	default:
		if item, err := strconv.Atoi(inner); err == nil {
			field.item = item
		} else {
			field.key = rulefield.Snake(inner)
		}
	}
	return field
}

// String returns the field as messages name it. They show the value of an item beside it.
func (f fieldPath) String() string {
	if f.key == "" {
		return f.name
	}
	return f.name + "." + f.key
}

// hasError reports whether the field already has an error. Core's error about the field may then be
// a consequence of it.
func (r *ruleReader) hasError(field string) bool {
	fields := []string{field}
	switch field {
	case "limit", "seconds", "max_count", "lease":
		fields = []string{"limit", "seconds", "max_count", field}
	case "plans", "plan":
		fields = []string{"plans", "plan"}
	}
	for _, field := range fields {
		if r.anyBad(get(r.node, field)) {
			return true
		}
	}
	return false
}

// anyBad reports whether there is an error in a value.
func (r *ruleReader) anyBad(n *yaml.Node) bool {
	if n == nil || r.bad[n] {
		return n != nil
	}
	for _, child := range n.Content {
		if r.anyBad(child) {
			return true
		}
	}
	return false
}

// find returns the place of a field that core refused, and how a message names it.
func (r *ruleReader) find(field fieldPath, code string) (at *yaml.Node, label string) {
	at = get(r.node, field.name)
	switch inside := get(at, field.key); {
	case inside != nil:
		at = inside
	case at != nil && field.item >= 0:
		at = at.Content[field.item]
	}
	switch {
	case at != nil:
		return at, valued(field.String(), at)
	case code == "no_limit": // there is no field to name
		return r.node, ""
	default:
		return r.node, field.String()
	}
}
