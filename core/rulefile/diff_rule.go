package rulefile

import (
	"maps"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/internal/algorithm"
	"github.com/accesslimit/accesslimit/core/internal/rulefield"
)

// comparison compares two versions of a rule.
type comparison struct {
	before, after placedRule
	all           []Change
}

// The reasons why all counters of a rule start empty.
const (
	otherSubjects = "because they are those of other subjects"
	ownOfDryRun   = "because a rule in dry_run has counters of its own"
)

// comparedByText reports whether versions of a field differ if their texts do. The other fields
// decide which counters a rule has, and are compared by their meaning. Functions cannot be
// compared: their names are.
func comparedByText(f *rulefield.Field) bool {
	return f != nil && f.Form != rulefield.Key && f.Counters != rulefield.ByLimit && f.Counters != rulefield.ByMode
}

func (d *comparison) changes() []Change {
	d.add("key", keyText(&d.before), keyText(&d.after), otherSubjects)
	d.mode()
	d.limit("limit", ownLimit(&d.before.Rule), ownLimit(&d.after.Rule))
	d.also()
	d.plans()
	if d.before.texts != nil && d.after.texts != nil { // otherwise one of them is a rule in Go
		for _, name := range keysOf(d.before.texts, d.after.texts) {
			if f := rulefield.InFile(name); comparedByText(f) {
				d.other(f)
			}
		}
	}
	return d.all
}

// add adds a change of all counters of the rule.
func (d *comparison) add(field, before, after, why string) {
	if before != after {
		d.all = append(d.all, Change{d.after.Name, field, before, after, true, why + d.inFlight(ownLimit(&d.after.Rule))})
	}
}

// mode compares the modes. A rule in dry_run has counters of its own, and the others share theirs.
func (d *comparison) mode() {
	before, after := d.before.Mode, d.after.Mode
	switch {
	case d.otherCounters():
		d.add("mode", before.String(), after.String(), ownOfDryRun)
	case before != after:
		d.all = append(d.all, Change{Rule: d.after.Name, Field: "mode", Before: before.String(), After: after.String()})
	}
}

// otherCounters reports whether the modes make the rule count in other counters than before.
func (d *comparison) otherCounters() bool {
	return (d.before.Mode == core.DryRun) != (d.after.Mode == core.DryRun)
}

// other adds a change of a field that is compared by its text.
func (d *comparison) other(f *rulefield.Field) {
	field := f.File()
	before, after := d.before.texts[field], d.after.texts[field]
	if before == after {
		return
	}
	change := Change{Rule: d.after.Name, Field: field, Before: cut(before), After: cut(after)}
	switch {
	case f.Counters == rulefield.ByResult:
		change.Why = "as far as its limits have the windows and algorithms of before"
	case f.Counters == rulefield.BySubject && keyText(&d.before) != keyText(&d.after):
		change.StartEmpty, change.Why = true, otherSubjects
	}
	d.all = append(d.all, change)
}

// limit adds a change of a limit. The zero Limit stands for none.
func (d *comparison) limit(field string, before, after core.Limit) {
	if before == after {
		return
	}
	change := Change{Rule: d.after.Name, Field: field, Before: textOfLimit(before), After: textOfLimit(after)}
	switch {
	case after == core.Limit{}:
	case after == core.Unlimited:
		change.Why = "but its callers are not counted any more"
	default:
		change.StartEmpty, change.Why = d.startsEmpty(before, after)
	}
	d.all = append(d.all, change)
}

// startsEmpty reports whether the rule did not have a limit's counter before, and why.
func (d *comparison) startsEmpty(before, after core.Limit) (empty bool, why string) {
	switch {
	case keyText(&d.before) != keyText(&d.after):
		why = otherSubjects
	case d.otherCounters():
		why = ownOfDryRun
	case slices.Contains(countersOf(&d.before.Rule), counterOf(after)):
		return false, ""
	case before == core.Limit{} || before == core.Unlimited:
		return true, ""
	case before.Calendar != after.Calendar:
		why = "because the calendar is another one"
	case before.Algorithm != after.Algorithm:
		why = "because the algorithm is another one"
	default:
		why = "because the window is another one"
	}
	return true, why + d.inFlight(after)
}

// inFlight returns what to add about calls in flight, if the limit counts them and existed before.
func (d *comparison) inFlight(limit core.Limit) string {
	if kind := algorithm.Kind(limit.Algorithm); !kind.Known() || !kind.Properties().Slots {
		return ""
	}
	return "; calls in flight are not counted"
}

// also compares the further limits. If a limit before and a limit after share a counter, they are
// one limit that has changed.
func (d *comparison) also() {
	left := slices.Clone(d.before.Also)
	for _, after := range d.after.Also {
		before := core.Limit{}
		if at := slices.IndexFunc(left, func(l core.Limit) bool { return counterOf(l) == counterOf(after) }); at >= 0 {
			before = left[at]
			left = slices.Delete(left, at, at+1)
		}
		d.limit("also", before, after)
	}
	for _, before := range left {
		d.limit("also", before, core.Limit{})
	}
}

func (d *comparison) plans() {
	for _, name := range keysOf(d.before.Plans, d.after.Plans) {
		d.limit("plans."+name, d.before.Plans[name], d.after.Plans[name])
	}
}

// ownLimit returns the rule's own limit.
func ownLimit(r *core.Rule) core.Limit {
	switch {
	case r.Limit != core.Limit{}:
		return r.Limit
	case r.MaxCount == 0:
		return core.Per(5, time.Duration(r.Seconds)*time.Second)
	default:
		return core.Per(r.MaxCount, time.Duration(r.Seconds)*time.Second)
	}
}

// counterOf returns the part of a limit on which its counter depends.
func counterOf(l core.Limit) core.Limit {
	l.Max, l.Burst = 0, 0
	return l
}

// countersOf returns the counters of all limits of a rule.
func countersOf(r *core.Rule) (all []core.Limit) {
	all = append(all, counterOf(ownLimit(r)))
	for _, limit := range r.Also {
		all = append(all, counterOf(limit))
	}
	for _, limit := range r.Plans {
		if limit != core.Unlimited {
			all = append(all, counterOf(limit))
		}
	}
	return all
}

func textOfLimit(l core.Limit) string {
	if l == (core.Limit{}) {
		return ""
	}
	return l.String()
}

// keyText returns the key by which a rule counts, in a uniform spelling.
func keyText(r *placedRule) string {
	text, ok := r.texts["key"]
	switch {
	case ok && strings.HasPrefix(text, "header:"):
		return strings.ToLower(text)
	case ok:
		return text
	case r.Key != nil:
		return "a function in Go"
	case r.NeedLogin:
		return "user"
	default:
		return "ip"
	}
}

// fieldTexts returns the values of a mapping, each in one line.
func fieldTexts(n *yaml.Node) map[string]string {
	texts := make(map[string]string)
	for i := 0; i+1 < len(n.Content); i += 2 {
		texts[n.Content[i].Value] = textOf(n.Content[i+1])
	}
	return texts
}

// textOf returns a value in one line. A list of one stands for its item, as in the field key. The
// fields of a mapping are sorted.
func textOf(n *yaml.Node) string {
	var items []string
	switch n.Kind {
	case yaml.SequenceNode:
		for _, item := range n.Content {
			items = append(items, textOf(item))
		}
		if len(items) == 1 {
			return items[0]
		}
		return "[" + strings.Join(items, ", ") + "]"
	case yaml.MappingNode:
		fields := fieldTexts(n)
		for _, name := range slices.Sorted(maps.Keys(fields)) {
			items = append(items, name+": "+fields[name])
		}
		return "{" + strings.Join(items, ", ") + "}"
	default:
		return n.Value
	}
}

// cut returns the beginning of a long text.
func cut(text string) string {
	if strings.ContainsAny(text, "\n\"") || len(text) > maxQuoted {
		return quote(text)
	}
	return text
}
