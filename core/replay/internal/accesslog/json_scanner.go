package accesslog

import (
	"encoding/json"
	"errors"
	"strings"
)

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
