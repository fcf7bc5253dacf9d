package rulefile

import (
	"fmt"
	"maps"
	"slices"
)

// Change is one difference between two versions of the rules, with its effect on the counters. See
// [Set.Diff].
type Change struct {
	// Rule is the name of the rule.
	Rule string
	// Field is the field of the file that differs, such as limit, also or plans.free. It is "" if
	// the whole rule is new or gone.
	Field string
	// Before and After are the values of the field in the two versions, in one line, or "" if there
	// is none. For a whole rule they are its limit.
	Before, After string
	// StartEmpty reports whether callers begin afresh, because another counter than before counts
	// their calls. Otherwise their use so far still counts.
	StartEmpty bool
	// Why says why counters start empty, or under which condition they keep their use. It may be
	// "".
	Why string
}

// String returns the change in words, such as
//
//	rule "api": limit 100/s becomes 200/s: counters keep their use
func (c Change) String() string {
	use := "counters keep their use"
	if c.StartEmpty {
		use = "counters start empty"
	}
	if c.Why != "" {
		use += ", " + c.Why
	}
	switch {
	case c.Field == "" && c.Before == "":
		return fmt.Sprintf("rule %s is new, with %s: %s", quote(c.Rule), c.After, use)
	case c.Field == "":
		return fmt.Sprintf("rule %s is gone, with %s", quote(c.Rule), c.Before)
	case c.Before == "":
		return fmt.Sprintf("rule %s: %s %s is new: %s", quote(c.Rule), c.Field, c.After, use)
	case c.After == "":
		return fmt.Sprintf("rule %s: %s %s is gone", quote(c.Rule), c.Field, c.Before)
	}
	return fmt.Sprintf("rule %s: %s %s becomes %s: %s", quote(c.Rule), c.Field, c.Before, c.After, use)
}

func texts(changes []Change) (texts []string) {
	for _, change := range changes {
		texts = append(texts, change.String())
	}
	return texts
}

func (l *loaded) diff(next *loaded) (changes []Change) {
	for _, name := range keysOf(l.rules, next.rules) {
		before, had := l.rules[name]
		after, has := next.rules[name]
		switch {
		case !had:
			changes = append(changes, Change{Rule: name, After: ownLimit(&after.Rule).String(), StartEmpty: true})
		case !has:
			changes = append(changes, Change{Rule: name, Before: ownLimit(&before.Rule).String()})
		default:
			d := comparison{before: before, after: after}
			changes = append(changes, d.changes()...)
		}
	}
	return changes
}

// keysOf returns the keys of two maps together, sorted.
func keysOf[V any](a, b map[string]V) []string {
	both := maps.Clone(a)
	if both == nil {
		both = make(map[string]V)
	}
	maps.Copy(both, b)
	return slices.Sorted(maps.Keys(both))
}
