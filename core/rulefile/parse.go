package rulefile

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// maxDepth is how deep values may be nested. A correct file reaches 5.
const maxDepth = 16

// parse returns the value of a file, or nil after adding what is wrong. If isJSON is set, the file
// must be JSON. Both forms are read by the YAML parser, which knows places and reads JSON too. It
// is the maintained successor of gopkg.in/yaml.v3, and has no dependencies outside its tests.
func parse(from source, wrong *problems) *yaml.Node {
	fail := func(at Place, why string) *yaml.Node {
		wrong.add(&Error{Place: at, Err: errors.New(why)})
		return nil
	}
	if offset, why := checkText(from.data); why != "" {
		return fail(placeOf(from.name, from.data, offset), why)
	}
	if from.isJSON {
		var syntax *json.SyntaxError
		if err := json.Unmarshal(from.data, new(json.RawMessage)); errors.As(err, &syntax) {
			return fail(placeOf(from.name, from.data, int(syntax.Offset)-1), "is not JSON: "+syntax.Error())
		}
		from.data = jsonAsYAML(from.data)
	}
	root, err := decode(from.data)
	if err != nil {
		line, why := explain(err, from.data)
		return fail(Place{from.name, line, 1}, why)
	}
	if kindOf(root) == nothing {
		return fail(Place{from.name, root.Line, root.Column}, "has no rules")
	}
	if at, why := checkNodes(root, 0); why != "" {
		return fail(Place{from.name, at.Line, at.Column}, why)
	}
	return root
}

var jsonEscape = regexp.MustCompile(`\\(?:u[dD][89abAB]..\\u[dD][c-fC-F]..|.)`)

// jsonAsYAML replaces the parts of JSON that YAML does not read: tabs, which occur only between
// values, and two escapes. Columns behind such an escape are a few characters off.
func jsonAsYAML(data []byte) []byte {
	data = bytes.ReplaceAll(data, []byte("\t"), []byte(" "))
	return jsonEscape.ReplaceAllFunc(data, func(escape []byte) []byte {
		var text string
		if bytes.Equal(escape, []byte(`\/`)) || len(escape) > 2 {
			_ = json.Unmarshal(fmt.Appendf(nil, `"%s"`, escape), &text) // it was valid
			return []byte(text)
		}
		return escape
	})
}

// decode parses one document. It recovers, because a mistake of the parser in a file that somebody
// else wrote must not end the service.
func decode(data []byte) (root *yaml.Node, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("yaml: cannot be parsed: %v", p)
		}
	}()
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	var document, next yaml.Node
	if err := decoder.Decode(&document); errors.Is(err, io.EOF) || err == nil && len(document.Content) == 0 {
		return nil, errors.New("yaml: has no rules")
	} else if err != nil {
		return nil, err
	}
	if err := decoder.Decode(&next); err == nil {
		return nil, fmt.Errorf("yaml: line %d: has a second document: one file is one document", next.Line)
	} else if !errors.Is(err, io.EOF) {
		return nil, err
	}
	return document.Content[0], nil
}

var parserError = regexp.MustCompile(`^yaml: (?:line (\d+): )?((?s).*)$`)

// explain returns the line of a parser's error, and what is wrong.
func explain(err error, data []byte) (line int, why string) {
	parts := parserError.FindStringSubmatch(err.Error())
	if parts == nil {
		return 1, err.Error()
	}
	line, _ = strconv.Atoi(parts[1])
	line, why = max(line, 1), parts[2]
	if strings.HasPrefix(why, "unknown anchor") {
		return line, noAlias // instead of the name
	}
	if tab := tabbedLine(data, line); tab > 0 {
		return tab, "is indented with a tab: YAML is indented with spaces"
	}
	return line, why
}

// tabbedLine returns the first line near the given one that begins with a tab, or 0. The parser
// does not mention the tab, and does not always name the exact line.
func tabbedLine(data []byte, line int) int {
	n := 0
	for text := range bytes.Lines(data) {
		n++
		if n > line+1 {
			break
		}
		indent := text[:len(text)-len(bytes.TrimLeft(text, " \t"))]
		if n >= line-1 && bytes.IndexByte(indent, '\t') >= 0 {
			return n
		}
	}
	return 0
}

const noAlias = "aliases (*name) are not read: write the value out"

// checkNodes refuses what YAML has beyond JSON: references, which let a small file stand for a
// huge one, and tags. It returns the node that is wrong, or an empty why.
func checkNodes(n *yaml.Node, depth int) (at *yaml.Node, why string) {
	switch {
	case n.Kind == yaml.AliasNode:
		return n, noAlias
	case n.Anchor != "":
		return n, "anchors (&name) are not read: write the value out"
	case n.Style&yaml.TaggedStyle != 0:
		return n, "tags (!name) are not read: leave the tag out"
	case depth > maxDepth:
		return n, fmt.Sprintf("is nested deeper than %d levels", maxDepth)
	}
	for _, child := range n.Content {
		if at, why := checkNodes(child, depth+1); why != "" {
			return at, why
		}
	}
	return nil, ""
}
