package operate

import (
	"slices"
	"strings"

	"github.com/accesslimit/accesslimit/core/internal/survey"
)

// work counts the commands and counters that an Explanation asks Redis for.
type work struct{ commands, counters int }

// searched is an upper bound of the commands that a script needs to find an entry of a log.
const searched = 20

// with adds the work for one more rule.
func (w work) with(e *explained) work {
	if e.Outgoing || e.of.Ban != nil { // its pauses or its strikes
		w.commands += 2
		w.counters++
	}
	for _, s := range slices.Concat(e.owns, e.also) {
		switch {
		case s.Limit == nil || s.isAny():
		case s.Compiled.Properties().Merges: // it is a string
			w.commands++
			w.counters++
		default:
			w.commands += searched
			w.counters++
		}
	}
	return w
}

// all returns the number of commands. Each script is one, and reads the clock.
func (w work) all() int { return w.commands + 2*((w.counters+survey.Together-1)/survey.Together) }

// askAtMost leaves out questions about rules, so that the others take at most the given number of
// commands. Rules that are Elsewhere are left out first.
func (x *explanation) askAtMost(commands int) {
	var w work
	for _, elsewhere := range []bool{false, true} {
		for _, e := range x.rules {
			if !e.asked || e.Elsewhere != elsewhere {
				continue
			}
			if more := w.with(e); more.all() <= commands {
				w = more
				continue
			}
			e.asked, e.undecided = false, true
			e.Errors = append(e.Errors, "Redis was not asked, because the other rules take up MaxCommands")
		}
	}
}

// partOf returns rules in the order of their names, starting behind a name, that take at most the
// given number of commands, and at least the rules of one name. next is the last of their names, if
// more follow.
func partOf(rules []*explained, after string, commands int) (part []*explained, next string) {
	slices.SortStableFunc(rules, func(a, b *explained) int { return strings.Compare(a.Name, b.Name) })
	var w work
	for _, e := range rules {
		if e.Name <= after {
			continue
		}
		if len(part) > 0 {
			next = part[len(part)-1].Name
		}
		if w = w.with(e); w.all() > commands && next != "" && next != e.Name {
			return part, next
		}
		part = append(part, e)
	}
	return part, ""
}
