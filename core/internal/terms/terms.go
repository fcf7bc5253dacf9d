// Package terms has the words of limits: their text form, which String writes and Parse reads,
// their phrases in messages to callers, and the patterns of the schema of rules files.
//
// The words for one algorithm are among its properties. So nothing here asks which algorithm a
// limit has.
package terms

import (
	"fmt"
	"time"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
)

// Terms is the content of a limit's text, in the same fields as core.Limit.
type Terms struct {
	Max    int
	Window time.Duration
	Unit   Unit // in place of Window
	Zone   string
	Kind   algorithm.Kind
	Burst  int
}

// Unlimited are the terms of core.Unlimited.
var Unlimited = Terms{Max: -1}

// DefaultLostAfter is the Window of a limit of slots unless its text names another.
const DefaultLostAfter = 30 * time.Second

// Unit is a span of a calendar, or 0.
type Unit uint8

// The units.
const (
	Days Unit = iota + 1
	Months
)

var units = [...]struct {
	name    string
	nominal time.Duration
}{Days: {"day", 24 * time.Hour}, Months: {"month", 31 * 24 * time.Hour}}

// String returns the unit in the singular.
func (u Unit) String() string { return units[u].name }

// nominal returns the length of a day or of a long month, disregarding days on which the clocks are
// changed.
func (u Unit) nominal() time.Duration { return units[u].nominal }

// ofCalendars is the algorithm that counts in the units.
var ofCalendars = kindsThat(func(p *algorithm.Properties) bool { return p.Calendar })[0]

// kindsThat returns the algorithms of limits with a property.
func kindsThat(has func(*algorithm.Properties) bool) (all []algorithm.Kind) {
	for _, kind := range algorithm.Kinds() {
		if has(kind.OfLimit()) {
			all = append(all, kind)
		}
	}
	return all
}

// spans are the spans that have a letter.
var spans = []struct {
	letter string
	is     time.Duration
}{{"s", time.Second}, {"m", time.Minute}, {"h", time.Hour}}

// String returns the text form of terms whose unset fields are filled in.
func (t Terms) String() string {
	switch of := t.Kind.OfLimit(); {
	case t == Unlimited:
		return "unlimited"
	case of.Slots && t.Window == DefaultLostAfter:
		return fmt.Sprintf("%d %s", t.Max, of.Text)
	case of.Slots:
		return fmt.Sprintf("%d %s lost after %s", t.Max, of.Text, Span(t.Window))
	case t.Unit != 0:
		return fmt.Sprintf("%d/%v@%s", t.Max, t.Unit, t.Zone)
	case of.Burst:
		return fmt.Sprintf("%d/%s %s %d", t.Max, letterOf(t.Window), of.Text, t.Burst)
	case of.Text != "":
		return fmt.Sprintf("%d/%s %s", t.Max, letterOf(t.Window), of.Text)
	default:
		return fmt.Sprintf("%d/%s", t.Max, letterOf(t.Window))
	}
}

// SpanName returns the word that distinguishes limits of one name in headers: 10s, day, at-once.
func (t Terms) SpanName() string {
	switch {
	case t.Kind.OfLimit().Slots:
		return "at-once"
	case t.Unit != 0:
		return t.Unit.String()
	default:
		return Span(t.Window)
	}
}
