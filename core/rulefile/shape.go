package rulefile

import (
	"regexp"

	"github.com/accesslimit/accesslimit/core/internal/pathmatch"
	"github.com/accesslimit/accesslimit/core/internal/rulefield"
	"github.com/accesslimit/accesslimit/core/internal/terms"
)

// shape is the form of a value. Both the loader's checks (shape_check.go) and the JSON Schema
// (shape_schema.go) come from it, so they cannot differ.
type shape struct {
	kind kind
	// like says in words what the value must be.
	like string

	// For a text: the pattern that it must match, if any, and a function that returns what else is
	// wrong with it, or "".
	pattern *regexp.Regexp
	wrong   func(text string) string
	// quotable is set if any text will do, even one that looks like a number.
	quotable bool
	// For a number: its bounds. For a fraction: the upper one.
	least, most int64
	// For a list: the shape of its items, of which there are at most most and no two are equal.
	item *shape
	// For a mapping: its fields, and which of them are required; or, if its keys are names, the
	// shape of its values, of which there are at most most.
	fields   []field
	required []string
	renamed  map[string]string // messages for names that were fields once
	values   *shape
	// For a choice: shapes of different kinds.
	choices []*shape
	// isRule marks the mapping that is a rule. Messages name the rule.
	isRule bool
}

type kind int

const (
	text kind = iota
	number
	fraction
	truth
	listing
	mapping
	choice
)

// field is a field of a mapping.
type field struct {
	name string
	doc  string
	*shape
}

const (
	maxItems  = 1000 // of a list or of plans
	maxText   = 4096 // bytes of a text
	maxFields = 100  // of a mapping, unknown ones included
)

func textLike(like string) *shape { return &shape{kind: text, like: like} }

func numberFrom(least, most int64) *shape {
	return &shape{kind: number, like: "a whole number", least: least, most: most}
}

// fractionUpTo is the shape of a number above 0.
func fractionUpTo(most int64) *shape {
	return &shape{kind: fraction, like: "a fraction such as 0.8", most: most}
}

func trueOrFalse() *shape { return &shape{kind: truth, like: "true or false"} }

func listOf(item *shape) *shape {
	return &shape{kind: listing, like: "a list", item: item, most: maxItems}
}

// field returns the field of this name, or nil.
func (s *shape) field(name string) *field {
	for i := range s.fields {
		if s.fields[i].name == name {
			return &s.fields[i]
		}
	}
	return nil
}

// names returns the names of the fields.
func (s *shape) names() (names []string) {
	for _, f := range s.fields {
		names = append(names, f.name)
	}
	return names
}

const span = `([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h)`

// The patterns of texts are a little wider than what core accepts, and never narrower.
var (
	namePattern  = regexp.MustCompile(`^[ -~]{1,128}$`)
	spanPattern  = regexp.MustCompile(`^(` + span + `)+$`)
	limitPattern = regexp.MustCompile(terms.Pattern())
	planPattern  = regexp.MustCompile(terms.UnlimitedPattern() + "|" + terms.Pattern())
	modePattern  = regexp.MustCompile(`^(enforce|soft|dry_run)$`)
	storePattern = regexp.MustCompile(`^ *(fail_open|fail_closed|count_locally +[^ ]+) *$`)
)

// version is the version of the form of files.
const version = 1

// document is the shape of a file.
var document = &shape{
	kind: mapping, like: "a mapping with version and rules", required: []string{"version", "rules"},
	fields: []field{
		{"$schema", "The schema of this file, for editors. The loader ignores it.", textLike("a text")},
		{"version", "The version of the form of this file.", numberFrom(version, version)},
		{"rules", "The rules, each under a name of its own.",
			&shape{kind: listing, like: "a list of rules", item: rule, most: maxRules}},
	},
}

// rule is the shape of a rule.
var rule = &shape{
	kind: mapping, like: "a rule, which is a mapping", isRule: true, required: []string{"name"}, fields: ruleFields(),
	renamed: map[string]string{
		"dry_run": "is written mode: dry_run now, and dry_run: false is left out",
		"soft":    "is written mode: soft now, and soft: false is left out",
	},
}

// ruleFields returns the fields of a rule in a file.
func ruleFields() (fields []field) {
	for i := range rulefield.Table {
		f := &rulefield.Table[i]
		fields = append(fields, field{f.File(), f.Doc, forms[f.Form].shape(f)})
	}
	return fields
}

func nameShape() *shape {
	s := textLike("a name of 1 to 128 printable ASCII characters")
	s.pattern, s.quotable = namePattern, true
	return s
}

func limitShape() *shape {
	return &shape{kind: text, like: "a limit such as 100/s", pattern: limitPattern, wrong: wrongLimit}
}

func modeShape() *shape {
	return &shape{kind: text, like: "enforce, soft or dry_run", pattern: modePattern, wrong: wrongMode}
}

func storeShape() *shape {
	return &shape{
		kind: text, like: "fail_open, fail_closed or count_locally with a share",
		pattern: storePattern, wrong: wrongStorePolicy,
	}
}

func spanShape() *shape {
	return &shape{kind: text, like: "a span such as 15m", pattern: spanPattern, wrong: wrongSpan}
}

func functionShape() *shape { return textLike("the name of a registered function") }

func pathShape() *shape {
	return &shape{kind: text, like: "a pattern of paths", wrong: pathmatch.CheckPattern}
}

func keyShape() *shape {
	one := textLike("a key")
	return &shape{kind: choice, like: "a key or a list of keys", choices: []*shape{one, listOf(one)}}
}

func plansShape() *shape {
	limit := &shape{kind: text, like: "a limit such as 100/s, or unlimited", pattern: planPattern, wrong: wrongPlan}
	return &shape{kind: mapping, like: "a mapping of plans to limits", values: limit, most: maxItems}
}

func banShape() *shape {
	return &shape{kind: mapping, like: "a mapping with after and for", fields: []field{
		{"after", "The number of consecutive windows in which a subject must be refused.", numberFrom(1, 1000)},
		{"for", "The duration of the first ban.", spanShape()},
		{"max", "The longest duration of a ban.", spanShape()},
	}}
}

func billShape() *shape {
	return &shape{kind: mapping, like: "a mapping with max_debt and max_estimate", fields: []field{
		{"max_debt", "How much more than the limit may be charged, as a multiple of it; 1 by default.", fractionUpTo(10)},
		{"max_estimate", "The largest part of the smallest limit that a call is charged before it runs.", fractionUpTo(1)},
	}}
}

func skipShape() *shape {
	address := &shape{kind: text, like: "an address or a prefix such as 10.0.0.0/8", wrong: wrongAddress}
	return &shape{kind: choice, like: "the name of a registered function, or a mapping", choices: []*shape{
		functionShape(),
		{kind: mapping, like: "a mapping with addresses, paths or function", fields: []field{
			{"addresses", "Addresses of callers, and prefixes such as 10.0.0.0/8.", listOf(address)},
			{"paths", "Patterns of paths; the same as except.", listOf(pathShape())},
			{"function", "A function in Functions.Skips.", functionShape()},
		}},
	}}
}

// smallest is the least number of entries of a list or a mapping. An empty one could be read as
// everything.
const smallest = 1
