package rulefile

import (
	"fmt"
	"math"
	"regexp"
	"strconv"

	"go.yaml.in/yaml/v3"
)

// Kinds of values that no shape accepts.
const (
	nothing kind = -1 - iota
	unknown
)

func kindOf(n *yaml.Node) kind {
	switch n.Kind {
	case yaml.SequenceNode:
		return listing
	case yaml.MappingNode:
		return mapping
	}
	switch n.ShortTag() {
	case "!!str", "!!timestamp": // a date is a text in JSON and YAML 1.2
		return text
	case "!!int":
		return number
	case "!!float": // or an integer with too many digits
		if decimal.MatchString(n.Value) {
			return number
		}
		if decimalFraction.MatchString(n.Value) {
			return fraction
		}
		return unknown
	case "!!bool":
		return truth
	case "!!null":
		return nothing
	default:
		return unknown
	}
}

// hint returns what to do about a text that lacks quotes, or a value that has them, or "".
func hint(n *yaml.Node, s *shape) string {
	quoted := n.Style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle) != 0
	switch {
	case n.Kind != yaml.ScalarNode:
		return ""
	case s.quotable && !quoted:
		return ": write it in quotes"
	case (s.kind == number || s.kind == fraction || s.kind == truth) && quoted:
		return ": leave out the quotes"
	}
	return ""
}

func (c *checker) text(n *yaml.Node, s *shape, label string) bool {
	why := ""
	switch {
	case n.Value == "":
		why = "is empty: give it a value, or leave it out"
	case len(n.Value) > maxText:
		why = fmt.Sprintf("has %d bytes, want at most %d", len(n.Value), maxText)
	}
	if why == "" && s.wrong != nil {
		why = s.wrong(n.Value)
	}
	if why == "" && s.pattern != nil && !s.pattern.MatchString(n.Value) {
		why = "must be " + s.like
	}
	if why != "" {
		c.fail(n, valued(label, n), why)
	}
	return why == ""
}

// decimal matches a whole number as JSON writes it. YAML has more spellings, and 0100 is 64 for one
// parser and 100 for another.
var decimal = regexp.MustCompile(`^(0|-?[1-9][0-9]*)$`)

func (c *checker) number(n *yaml.Node, s *shape, label string) bool {
	value, err := strconv.ParseInt(n.Value, 10, 64)
	most := min(s.most, math.MaxInt) // an int may have 32 bits
	switch {
	case !decimal.MatchString(n.Value):
		c.fail(n, valued(label, n), "must be a whole number in digits, such as 100")
	case s.least == s.most && (err != nil || value != s.least):
		c.fail(n, valued(label, n), fmt.Sprintf("must be %d", s.least))
	case err != nil || value < s.least || value > most:
		c.fail(n, valued(label, n), fmt.Sprintf("must be %d to %d", s.least, most))
	default:
		return true
	}
	return false
}

// decimalFraction matches a number with a fraction as JSON writes it, without an exponent.
var decimalFraction = regexp.MustCompile(`^-?(0|[1-9][0-9]*)\.[0-9]+$`)

func (c *checker) fraction(n *yaml.Node, s *shape, label string) bool {
	if value := fractionOf(n.Value); !(0 < value && value <= float64(s.most)) || !decimal.MatchString(n.Value) && !decimalFraction.MatchString(n.Value) {
		c.fail(n, valued(label, n), fmt.Sprintf("must be above 0 and up to %d, such as 0.8", s.most))
		return false
	}
	return true
}

func (c *checker) truth(n *yaml.Node, _ *shape, label string) bool {
	if n.Value != "true" && n.Value != "false" {
		c.fail(n, valued(label, n), "must be true or false, in lower case")
		return false
	}
	return true
}
