package accesslog

import (
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/accesslimit/accesslimit/core/adapter"
)

// field is what a part of a line says of a call. A field of a kind that has names (header, cookie,
// value) has a name.
type field struct{ kind, name string }

// setters fill in a call by the text of a field, for each kind without a name.
var setters = map[string]func(p *clock, c *Call, text string) error{
	"time": func(p *clock, c *Call, text string) (err error) {
		c.written, err = p.time(text)
		c.hasTime = err == nil
		return err
	},
	"start": func(p *clock, c *Call, text string) (err error) {
		c.Began, err = p.time(text)
		c.hasStart = err == nil
		return err
	},
	"seconds":      func(_ *clock, c *Call, text string) error { c.Took = took(text, 6); return nil },
	"milliseconds": func(_ *clock, c *Call, text string) error { c.Took = took(text, 3); return nil },
	"nanoseconds":  func(_ *clock, c *Call, text string) error { c.Took = took(text, -3); return nil },
	"request":      func(_ *clock, c *Call, text string) error { c.setRequest(text); return nil },
	"method":       func(_ *clock, c *Call, text string) error { c.Method = text; return nil },
	"uri":          func(_ *clock, c *Call, text string) error { c.URI = text; return nil },
	"host":         func(_ *clock, c *Call, text string) error { c.Host = text; return nil },
	"user":         func(_ *clock, c *Call, text string) error { c.User = text; return nil },
	"route":        func(_ *clock, c *Call, text string) error { c.Route = text; return nil },
	"address":      func(_ *clock, c *Call, text string) error { c.Address = addressOf(text); return nil },
	"status": func(_ *clock, c *Call, text string) error {
		if n, err := strconv.Atoi(text); err == nil && 0 <= n && n <= 999 {
			c.Status = n
		}
		return nil
	},
	"size": func(_ *clock, c *Call, text string) error {
		if n, err := strconv.ParseInt(text, 10, 64); err == nil && n >= 0 {
			c.Size = n
		}
		return nil
	},
}

// named are the kinds of fields that have a name.
var named = []string{"header", "cookie", "value"}

// parseField reads the name of a field: "user", or "header:X-Tenant".
func parseField(text string) (field, error) {
	kind, name, hasName := strings.Cut(text, ":")
	switch {
	case !hasName && setters[kind] != nil:
		return field{kind: kind}, nil
	case !hasName || name == "" || !slices.Contains(named, kind):
		return field{}, fmt.Errorf("there is no field %q: the fields are %s", text, fieldList())
	case kind == "header":
		name = http.CanonicalHeaderKey(name)
	}
	return field{kind, name}, nil
}

// fieldList returns the names of all fields, for messages.
func fieldList() string {
	var all []string
	for kind := range setters {
		all = append(all, kind)
	}
	for _, kind := range named {
		all = append(all, kind+":NAME")
	}
	slices.Sort(all)
	return strings.Join(all, ", ")
}

// set fills in the call by the text of a field. Proxies write - for a value that is missing.
func (f *field) set(p *clock, c *Call, text string) error {
	switch {
	case text == "" || text == "-":
		return nil
	case f.name != "":
		c.named = append(c.named, namedText{f.kind, f.name, text})
		return nil
	}
	return setters[f.kind](p, c, text)
}

// setRequest reads a request line: GET /path?query HTTP/1.1.
func (c *Call) setRequest(text string) {
	method, rest, ok := strings.Cut(text, " ")
	if !ok {
		return
	}
	if end := strings.LastIndexByte(rest, ' '); end >= 0 && strings.HasPrefix(rest[end+1:], "HTTP/") {
		rest = rest[:end]
	}
	c.Method, c.URI = method, rest
}

// addressOf reads an address with or without a port. Of a list, the last one counts: it is the one
// that the proxy itself saw.
func addressOf(text string) netip.Addr {
	if comma := strings.LastIndexByte(text, ','); comma >= 0 {
		text = strings.TrimSpace(text[comma+1:])
	}
	if !strings.ContainsRune(text, ':') {
		addr, _ := netip.ParseAddr(text)
		return addr
	}
	return adapter.PeerAddr(text)
}

// isToken reports whether text can be a method.
func isToken(text string) bool {
	for i := range len(text) {
		if c := text[i]; (c < 'A' || c > 'Z') && (c < 'a' || c > 'z') && c != '-' && c != '_' {
			return false
		}
	}
	return text != ""
}
