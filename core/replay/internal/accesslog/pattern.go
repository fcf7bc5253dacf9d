package accesslog

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// pattern is the form of a line as nginx's log_format or a format string of Envoy describes it: values
// between fixed texts.
type pattern struct {
	start  string // the text before the first value
	values []value
	open   bool // a line may go on behind the pattern
	raw    bool // values are written as they are, as Envoy does: a backslash escapes nothing
}

// namedPattern is a pattern that has a name. fields are those that its own variables do not say.
type namedPattern struct {
	text   string
	fields map[field][]string
}

// with returns the fields of the pattern, and others that take the place of those.
func (n namedPattern) with(others map[field][]string) map[field][]string {
	all := make(map[field][]string)
	maps.Copy(all, n.fields)
	maps.Copy(all, others)
	return all
}

// value is a part of a line, up to the text that ends it. The last one may have none.
type value struct {
	fields []field // what it says of the call; none if it is skipped
	end    string
}

var variable = regexp.MustCompile(`\$\{\w+\}|\$\w+|%[A-Z_0-9]+(?:\([^)]*\)(?::\d+)?)?%`)

// parsePattern reads a log_format, or a format string of Envoy. fields has the names of variables that
// say further things, or other things than the proxy's own variables do.
func parsePattern(text string, fields map[field][]string) (*pattern, error) {
	text = directiveText(text)
	found := variable.FindAllStringIndex(text, -1)
	if found == nil {
		return nil, fmt.Errorf("the format %.80q has no variables such as $remote_addr", text)
	}
	p, unused := &pattern{start: text[:found[0][0]], raw: text[found[0][0]] == '%'}, fieldsByName(fields)
	for i, at := range found {
		name, end := variableName(text[at[0]:at[1]]), len(text)
		if i+1 < len(found) {
			end = found[i+1][0]
		}
		v := value{end: text[at[1]:end], fields: fieldsOf(name, fields)}
		if v.end == "" && i+1 < len(found) {
			return nil, fmt.Errorf("nothing separates %s from the variable behind it", text[at[0]:at[1]])
		}
		p.values = append(p.values, v)
		delete(unused, name)
	}
	for _, name := range slices.Sorted(maps.Keys(unused)) {
		return nil, fmt.Errorf("the format has no variable %q, from which a field is to be read", name)
	}
	return p, p.lacks()
}

// lacks returns an error if the values do not say what a call is, or when it was.
func (p *pattern) lacks() error {
	says := make(map[string]bool)
	for _, v := range p.values {
		for _, f := range v.fields {
			says[f.kind] = true
		}
	}
	switch {
	case !says["request"] && !(says["method"] && says["uri"]):
		return errors.New("the format does not say what is called: name $request, or $request_method and $request_uri")
	case !says["time"] && !says["start"]:
		return errors.New("the format does not say when a call was: name $time_local, $time_iso8601 or $msec")
	}
	return nil
}

// variableName returns the name of a variable, or of an operator of Envoy.
func variableName(text string) string {
	if text[0] == '%' {
		return operatorName(text)
	}
	return strings.Trim(text, "${}")
}

// fieldsByName returns the names of the variables in fields.
func fieldsByName(fields map[field][]string) map[string]bool {
	names := make(map[string]bool)
	for _, from := range fields {
		for _, name := range from {
			names[name] = true
		}
	}
	return names
}

// fieldsOf returns what a variable says of a call.
func fieldsOf(name string, fields map[field][]string) (of []field) {
	if f, ok := variableField(name); ok && fields[f] == nil {
		of = append(of, f)
	}
	for f, from := range fields {
		if slices.Contains(from, name) {
			of = append(of, f)
		}
	}
	return of
}

var (
	directive = regexp.MustCompile(`(?s)^\s*log_format\s+\S+\s+(?:escape=\S+\s+)?(.*?);?\s*$`)
	quoted    = regexp.MustCompile(`(?s)'((?:[^'\\]|\\.)*)'`)
)

// directiveText returns the format in a log_format directive that was copied from a configuration, or
// text itself, without the end of the line that a format string of Envoy has.
func directiveText(text string) string {
	inside := directive.FindStringSubmatch(text)
	if inside == nil {
		return strings.TrimSuffix(strings.TrimRight(text, "\r\n"), `\n`)
	}
	parts := quoted.FindAllStringSubmatch(inside[1], -1)
	if parts == nil {
		return strings.Trim(inside[1], `"`)
	}
	text = ""
	for _, part := range parts {
		text += strings.ReplaceAll(part[1], `\'`, `'`)
	}
	return text
}

// parse implements parser.
func (p *pattern) parse(line string, t *clock, c *Call) error {
	rest, ok := strings.CutPrefix(line, p.start)
	if !ok {
		return fmt.Errorf("does not begin with %q", p.start)
	}
	for i := range p.values {
		v, text := &p.values[i], rest
		if v.end == "" {
			rest = ""
		} else if end := p.ending(rest, v.end); end < 0 {
			return fmt.Errorf("has no %q after %.40q", v.end, rest)
		} else {
			text, rest = rest[:end], rest[end+len(v.end):]
		}
		if err := p.set(v, t, c, text); err != nil {
			return err
		}
	}
	if rest != "" && !p.open {
		return fmt.Errorf("goes on behind the format with %.40q: end the format with $rest, or the like", rest)
	}
	return nil
}

// set fills in the call by the text of a value.
func (p *pattern) set(v *value, t *clock, c *Call, text string) error {
	if len(v.fields) > 0 && !p.raw {
		text = unescaped(text)
	}
	for i := range v.fields {
		if err := v.fields[i].set(t, c, text); err != nil {
			return err
		}
	}
	return nil
}

// ending returns where the text that ends a value begins, or -1. A quotation mark behind a backslash
// belongs to the value.
func (p *pattern) ending(text, end string) int {
	for from := 0; ; {
		at := strings.Index(text[from:], end)
		if at < 0 {
			return -1
		}
		at += from
		if p.raw || end[0] != '"' || !isEscaped(text[:at]) {
			return at
		}
		from = at + 1
	}
}
