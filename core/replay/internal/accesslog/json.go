package accesslog

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"
)

// jsonFields says which parts of a JSON object tell what. The tree of names has a field at each part.
type jsonFields struct {
	fields  []field
	inside  map[string]*jsonFields
	headers bool   // the part is an object with the request's headers
	prefix  string // at the root: headers are beside the other parts, behind this prefix
}

// add adds a field at a path of names with dots between them. A part of this very name counts as well.
func (f *jsonFields) add(path string, of field) {
	f.at(path, func(at *jsonFields) { at.fields = append(at.fields, of) })
}

// at calls change for the part at a path.
func (f *jsonFields) at(path string, change func(*jsonFields)) {
	node := f
	names := strings.Split(path, ".")
	for _, name := range names {
		node = node.child(name)
	}
	change(node)
	if len(names) > 1 {
		change(f.child(path))
	}
}

func (f *jsonFields) child(name string) *jsonFields {
	if f.inside == nil {
		f.inside = make(map[string]*jsonFields)
	}
	if f.inside[name] == nil {
		f.inside[name] = new(jsonFields)
	}
	return f.inside[name]
}

var errNoObject = errors.New("is not a JSON object")

// parse implements parser.
func (f *jsonFields) parse(line string, t *clock, c *Call) error {
	s := jsonScanner{text: line}
	s.space()
	if !s.is('{') {
		return errNoObject
	}
	if f.prefix != "" {
		c.headers = headerObject{line, f.prefix}
	}
	if err := s.object(func(name string) error { return f.value(&s, t, c, name) }); err != nil {
		return err
	}
	if s.space(); s.at < len(line) {
		return errors.New("goes on behind the JSON object")
	}
	return nil
}

// value reads the value of a name in an object.
func (f *jsonFields) value(s *jsonScanner, t *clock, c *Call, name string) error {
	at := f.inside[name]
	if at == nil {
		return s.skip()
	}
	return at.read(s, t, c)
}

// read reads a value: its fields, or those inside. Of a list, each element counts for a field that has a
// name, and the last for another.
func (f *jsonFields) read(s *jsonScanner, t *clock, c *Call) error {
	switch {
	case f.headers && s.is('{'):
		begin := s.at
		if err := s.skip(); err != nil {
			return err
		}
		c.headers.json = s.text[begin:s.at]
		return nil
	case s.is('{'):
		return s.object(func(name string) error { return f.value(s, t, c, name) })
	case s.is('['):
		return s.list(func() error { return f.read(s, t, c) })
	}
	text, isText, err := s.scalar()
	if err != nil || !isText && (text == "null" || text == "true" || text == "false") {
		return err
	}
	for i := range f.fields {
		if err := f.fields[i].set(t, c, text); err != nil {
			return err
		}
	}
	return nil
}

// redacted is what Caddy writes in place of a secret. All callers have it, so it is no key.
const redacted = "REDACTED"

// find returns the values of a request header.
func (h headerObject) find(header string) (texts []string) {
	s := jsonScanner{text: h.json}
	s.space()
	_ = s.object(func(name string) error {
		name, ok := strings.CutPrefix(name, h.prefix)
		if !ok || http.CanonicalHeaderKey(name) != header {
			return s.skip()
		}
		add := func() error {
			text, isText, err := s.scalar()
			if isText && text != "" && text != redacted {
				texts = append(texts, text)
			}
			return err
		}
		switch {
		case s.is('['):
			return s.list(add)
		case s.is('{'):
			return s.skip()
		}
		return add()
	})
	return texts
}

// jsonScanner walks through a JSON text. It is as strict as a reader of logs needs: it accepts every
// correct text, and reads only the parts that somebody asks for.
type jsonScanner struct {
	text  string
	at    int
	depth int
}

var errJSON = errors.New("is not correct JSON")

// maxJSONDepth bounds how deep values are nested.
const maxJSONDepth = 100

// space skips white space.
func (s *jsonScanner) space() {
	for s.at < len(s.text) {
		switch s.text[s.at] {
		case ' ', '\t', '\r', '\n':
			s.at++
		default:
			return
		}
	}
}

// is reports whether a value begins with this byte.
func (s *jsonScanner) is(c byte) bool { return s.at < len(s.text) && s.text[s.at] == c }

// take skips white space, a byte, and white space again, and reports whether the byte was there.
func (s *jsonScanner) take(c byte) bool {
	s.space()
	if !s.is(c) {
		return false
	}
	s.at++
	s.space()
	return true
}

// object calls read for each name of an object. read has to read the value.
func (s *jsonScanner) object(read func(name string) error) error {
	return s.each('{', '}', func() error {
		name, isText, err := s.scalar()
		if err != nil || !isText || !s.take(':') {
			return errJSON
		}
		return read(name)
	})
}

// list calls read for each element of a list. read has to read it.
func (s *jsonScanner) list(read func() error) error { return s.each('[', ']', read) }

// each calls read for each entry between two brackets.
func (s *jsonScanner) each(open, end byte, read func() error) error {
	if s.depth++; s.depth > maxJSONDepth || !s.take(open) {
		return errJSON
	}
	defer func() { s.depth-- }()
	if s.is(end) {
		s.at++
		return nil
	}
	for {
		if err := read(); err != nil {
			return err
		}
		s.space()
		if s.is(end) {
			s.at++
			return nil
		}
		if !s.take(',') {
			return errJSON
		}
	}
}

// skip skips a value.
func (s *jsonScanner) skip() error {
	switch {
	case s.is('{'):
		return s.object(func(string) error { return s.skip() })
	case s.is('['):
		return s.list(s.skip)
	}
	_, _, err := s.scalar()
	return err
}

// scalar reads a text without its quotes and escapes, or another scalar as it is written.
func (s *jsonScanner) scalar() (text string, isText bool, err error) {
	if s.is('"') {
		text, err = s.quoted()
		return text, true, err
	}
	begin := s.at
	for s.at < len(s.text) && !strings.ContainsRune(",]}: \t\r\n\"[{", rune(s.text[s.at])) {
		s.at++
	}
	if s.at == begin {
		return "", false, errJSON
	}
	return s.text[begin:s.at], false, nil
}

// quoted reads a text in quotes.
func (s *jsonScanner) quoted() (string, error) {
	begin, escaped := s.at, false
	for s.at++; s.at < len(s.text); s.at++ {
		switch s.text[s.at] {
		case '\\':
			escaped = true
			s.at++
		case '"':
			s.at++
			if !escaped {
				return s.text[begin+1 : s.at-1], nil
			}
			var text string
			if json.Unmarshal([]byte(s.text[begin:s.at]), &text) != nil {
				return "", errJSON
			}
			return text, nil
		}
	}
	return "", errJSON
}
