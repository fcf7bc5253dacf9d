package accesslog

import (
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
