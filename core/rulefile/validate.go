package rulefile

import (
	"errors"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"go.yaml.in/yaml/v3"

	"github.com/accesslimit/accesslimit/core"
)

// validate lets core check the rule as it checks one in Go, and adds what it refuses. Core names
// one error at a time, so the field that was wrong is unset, and the rest is checked again.
func (r *ruleReader) validate(limiter *core.Limiter) {
	for range maxErrors {
		_, err := limiter.Guard(r.rule)
		var wrong *core.RuleError
		if !errors.As(err, &wrong) || r.wrong.full() {
			return
		}
		name := fieldOf(wrong.Field)
		if !r.hasError(name) {
			at, label := r.find(name, wrong)
			r.failAs(at, label, inFile(wrong.Why), wrong)
		}
		if !r.unset(name, wrong) {
			return
		}
	}
}

var bracketed = regexp.MustCompile(`^([^\[]*)\["(.*)"\]$`)

// fieldOf returns the field of a file that a field of a core.RuleError stands for: max_count for
// MaxCount, plans.free for Plans["free"].
func fieldOf(name string) string {
	if strings.HasPrefix(name, "Limit.") { // its parts are one text
		return "limit"
	}
	plan := ""
	if parts := bracketed.FindStringSubmatch(name); parts != nil {
		name, plan = parts[1], "."+parts[2]
	}
	outer, inner, nested := strings.Cut(name, ".")
	if nested {
		return snake(outer) + "." + snake(inner)
	}
	return snake(name) + plan
}

// snake returns a name of Go as files spell it: max_count for MaxCount.
func snake(name string) string {
	var b strings.Builder
	for i, r := range name {
		if unicode.IsUpper(r) && i > 0 {
			b.WriteByte('_')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}

// hasError reports whether an error in the field was added already. Then core's error about the
// field may be a consequence of that one.
func (r *ruleReader) hasError(name string) bool {
	field, _, _ := strings.Cut(name, ".")
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
func (r *ruleReader) find(name string, wrong *core.RuleError) (at *yaml.Node, label string) {
	field, inner, _ := strings.Cut(name, ".")
	at = get(r.node, field)
	if inner != "" && get(at, inner) != nil {
		at = get(at, inner)
	}
	if limit, ok := wrong.Value.(core.Limit); ok && field == "also" {
		at = limitIn(at, limit)
	}
	switch {
	case at != nil:
		return at, valued(name, at)
	case field == "seconds": // there is no limit at all
		return r.node, ""
	default:
		return r.node, name
	}
}

// limitIn returns the entry of a list that is a limit, the last if several are, or the list itself.
func limitIn(list *yaml.Node, limit core.Limit) *yaml.Node {
	for _, item := range slices.Backward(list.Content) {
		if limitOf(item.Value) == limit {
			return item
		}
	}
	return list
}

// goNames are words of core's messages that a file spells in another way.
var goNames = regexp.MustCompile(`\b(?:(?:SlidingWindow or FixedWindow|SlidingLog|Limit\.Max|` +
	`Overrides|Warn|Seconds|MaxCount|LimitFor|Limit|Plans|Plan|For|ByHand|Max)\b|Log\(\))`)

// inFile returns a message of core in the words of a file.
func inFile(why string) string {
	return goNames.ReplaceAllStringFunc(why, func(name string) string {
		switch name {
		case "SlidingWindow or FixedWindow":
			return "a sliding or a fixed window"
		case "SlidingLog":
			return "a sliding log"
		case "Limit.Max":
			return "the number in it"
		case "Log()":
			return "log, such as 5/15m log"
		case "For":
			return `"for"`
		default:
			return snake(name)
		}
	})
}
