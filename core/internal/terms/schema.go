package terms

import (
	"regexp"
	"strings"
	"time"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
)

// Examples of limits in all text forms. RuleForms are the ones that a rule can have.
const (
	forms     = "100/s, 5/15m log, 10/s burst 20, 1000/day@UTC, "
	RuleForms = forms + "or 3 at once"
	allForms  = forms + "3 at once, or unlimited"
)

// Pattern returns a regular expression that matches the texts of all limits except Unlimited. It
// accepts a little more than Parse does.
func Pattern() string {
	var slots []string
	for _, kind := range kindsThat(hasSlots) {
		slots = append(slots, " +"+spaced(kind.OfLimit().Text)+"( +lost +after +[^ ]+)?")
	}
	words := suffixes(" [0-9]+")
	for i, word := range words {
		words[i] = spaced(word)
	}
	return "^ *[0-9]+(" + strings.Join(slots, "|") + "|/[^ ]+( +(" + strings.Join(words, "|") + "))?) *$"
}

// UnlimitedPattern returns a regular expression that matches the text of Unlimited.
func UnlimitedPattern() string { return "^ *" + regexp.QuoteMeta(Unlimited.String()) + " *$" }

// spaced returns a pattern that allows several spaces between words.
func spaced(words string) string { return strings.ReplaceAll(words, " ", " +") }

// Example returns an example of a limit with the first algorithm that has a property.
func Example(has func(*algorithm.Properties) bool) string {
	return Terms{Max: 5, Window: 15 * time.Minute, Kind: kindsThat(has)[0], Burst: 20}.String()
}

// Kinds returns the algorithms with a property, in English: "a sliding window or a fixed window".
func Kinds(has func(*algorithm.Properties) bool) string {
	var names []string
	for _, kind := range kindsThat(has) {
		names = append(names, "a "+inEnglish(kind.OfLimit().Name))
	}
	return strings.Join(names, " or ")
}

var capital = regexp.MustCompile(`(.)([A-Z])`)

func inEnglish(name string) string {
	return strings.ToLower(capital.ReplaceAllString(name, "$1 $2"))
}
