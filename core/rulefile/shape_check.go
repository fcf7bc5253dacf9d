package rulefile

import (
	"fmt"

	"go.yaml.in/yaml/v3"
)

// checker compares the values of one file with their shapes.
type checker struct {
	file   string
	wrong  *problems
	bad    map[*yaml.Node]bool // values with an error in them
	name   string              // of the rule that is being checked, or ""
	within string              // the rule in messages, or ""

	anyFunction bool // accepts every name of a function
}

// fail adds an error at a node about a field.
func (c *checker) fail(n *yaml.Node, label, why string) { c.failAs(n, label, why, nil) }

// failAs adds an error that wraps an error of core.
func (c *checker) failAs(n *yaml.Node, label, why string, core error) {
	if label != "" {
		why = label + ": " + why
	}
	c.wrong.add(&Error{
		Place: Place{c.file, n.Line, n.Column}, Rule: c.name, Err: &fieldError{why, core}, within: c.within,
	})
}

// valued returns a field with its value, for messages.
func valued(label string, n *yaml.Node) string {
	switch {
	case label == "" && n.Kind == yaml.ScalarNode:
		return quote(n.Value)
	case n.Kind != yaml.ScalarNode || n.ShortTag() == "!!null":
		return label
	case n.ShortTag() == "!!str":
		return label + " = " + quote(n.Value)
	default:
		return fmt.Sprintf("%s = %.*s", label, maxQuoted, n.Value)
	}
}

// check reports whether a value has a shape, and adds what is wrong. The label names the value in
// messages.
func (c *checker) check(n *yaml.Node, s *shape, label string) (ok bool) {
	if s.isRule {
		c.enter(n)
		defer c.leave()
		label = ""
	}
	if s.kind == choice {
		s = s.chosen(n)
	}
	kind := kindOf(n)
	if s.kind == fraction && kind == number {
		kind = fraction
	}
	switch kind {
	case s.kind:
		ok = c.checkers()[s.kind](n, s, label)
	case nothing:
		c.fail(n, label, "has no value: give it one, or leave it out")
	default:
		c.fail(n, valued(label, n), "must be "+s.like+hint(n, s))
	}
	if !ok {
		c.bad[n] = true
	}
	return ok
}

func (c *checker) checkers() [choice]func(*yaml.Node, *shape, string) bool {
	return [...]func(*yaml.Node, *shape, string) bool{c.text, c.number, c.fraction, c.truth, c.list, c.mapping}
}

// chosen returns the shape of a choice that has the value's kind, or the choice itself.
func (s *shape) chosen(n *yaml.Node) *shape {
	for _, one := range s.choices {
		if one.kind == kindOf(n) {
			return one
		}
	}
	return s
}

// enter notes the name of a rule for messages.
func (c *checker) enter(n *yaml.Node) {
	if value := get(n, "name"); value != nil && kindOf(value) == text && value.Value != "" {
		c.name, c.within = value.Value, "rule "+quote(value.Value)
	} else {
		c.within = "rule without a name"
	}
}

func (c *checker) leave() { c.name, c.within = "", "" }

// get returns the value of a field in a mapping, the first if there are several, or nil.
func get(n *yaml.Node, name string) *yaml.Node {
	if n == nil || n.Kind != yaml.MappingNode {
		return nil
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == name {
			return n.Content[i+1]
		}
	}
	return nil
}

func (c *checker) list(n *yaml.Node, s *shape, label string) bool {
	if !c.size(n, s, label, len(n.Content)) {
		return false
	}
	ok := true
	seen := make(map[string]*yaml.Node)
	for _, item := range n.Content {
		if !c.check(item, s.item, label) {
			ok = false
			continue
		}
		if item.Kind != yaml.ScalarNode {
			continue
		}
		if first := seen[item.Value]; first != nil {
			c.fail(item, valued(label, item), fmt.Sprintf("is listed twice, first at %d:%d", first.Line, first.Column))
			c.bad[item], ok = true, false
			continue
		}
		seen[item.Value] = item
	}
	return ok
}

// atMost returns how many entries a list or a mapping may have.
func (s *shape) atMost() int64 {
	if s.fields != nil {
		return maxFields
	}
	return s.most
}

// size checks how much a list or a mapping holds.
func (c *checker) size(n *yaml.Node, s *shape, label string, size int) bool {
	switch {
	case size < smallest:
		c.fail(n, label, "is empty: give it a value, or leave it out")
	case int64(size) > s.atMost():
		c.fail(n, label, fmt.Sprintf("has %d entries, want at most %d", size, s.atMost()))
	default:
		return true
	}
	return false
}

func (c *checker) mapping(n *yaml.Node, s *shape, label string) bool {
	if !c.size(n, s, label, len(n.Content)/2) {
		return false
	}
	ok := true
	seen := make(map[string]*yaml.Node)
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		if first := seen[key.Value]; first != nil && key.Kind == yaml.ScalarNode {
			c.fail(key, "", fmt.Sprintf("%s is given twice, first at %d:%d", quote(key.Value), first.Line, first.Column))
			c.bad[value], ok = true, false
			continue
		}
		seen[key.Value] = key
		ok = c.entry(key, value, s, label) && ok
	}
	return c.complete(n, s, label, seen) && ok
}

// entry checks a key of a mapping and its value.
func (c *checker) entry(key, value *yaml.Node, s *shape, label string) bool {
	switch f := s.field(key.Value); {
	case key.ShortTag() == "!!merge":
		c.fail(key, label, "merge keys (<<) are not read: write the fields out")
	case kindOf(key) != text:
		c.fail(key, label, "has a key that is not a text: write it in quotes")
	case key.Value == "":
		c.fail(key, label, "has an empty key")
	case s.values != nil:
		return c.check(value, s.values, label+"."+key.Value)
	case s.renamed[key.Value] != "":
		c.fail(key, key.Value, s.renamed[key.Value])
	case f == nil:
		c.unknown(key, s)
	case label == "":
		return c.check(value, f.shape, f.name)
	default:
		return c.check(value, f.shape, label+"."+f.name)
	}
	c.bad[value] = true
	return false
}

// unknown adds the error that a mapping does not have this field. A hostile file can have very many
// unknown fields, so suggestions are made only for as many as are reported.
func (c *checker) unknown(key *yaml.Node, s *shape) {
	why := "unknown field " + quote(key.Value)
	if !c.wrong.full() {
		why += didYouMean(key.Value, s.names())
	}
	c.fail(key, "", why)
}

// complete reports whether a mapping has all fields that it must have.
func (c *checker) complete(n *yaml.Node, s *shape, label string, seen map[string]*yaml.Node) bool {
	ok := true
	for _, name := range s.required {
		if seen[name] == nil {
			c.fail(n, label, fmt.Sprintf("has no %q", name))
			ok = false
		}
	}
	return ok
}
