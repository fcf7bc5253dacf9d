// Package accesslog reads the access logs of proxies as calls in the order in which they began.
//
// From top to bottom: [Merge] takes the earliest call of several logs. An [ordered] log sorts the
// calls that were written up to a minute late. A [Log] reads lines and parses them in a [Format]: by
// a pattern, as nginx's log_format has it, or as JSON. Both fill in a [Call] by the same fields.
package accesslog

import "net/netip"

// Call is one call in a log. Its strings are parts of the line.
type Call struct {
	Began   int64 // in microseconds since the epoch
	Took    int64 // in microseconds, or 0 if the log does not tell
	Method  string
	URI     string // the path as it was sent, with the query
	Host    string
	User    string
	Route   string
	Address netip.Addr
	Status  int   // 0 if the log does not tell
	Size    int64 // of the body in bytes, or -1
	Late    bool  // it was written more than a minute after calls that began later

	named    []namedText
	headers  headerObject
	written  int64 // when the line was written
	hasStart bool
	hasTime  bool
}

// namedText is a value that only rules which name it read.
type namedText struct{ kind, name, text string }

// headerObject is a part of a line that holds request headers in JSON, with what precedes their names.
type headerObject struct{ json, prefix string }

// Named returns the values of a field that has a name: of the kind "header", "cookie" or "value".
func (c *Call) Named(kind, name string) (texts []string) {
	for _, n := range c.named {
		if n.kind == kind && n.name == name {
			texts = append(texts, n.text)
		}
	}
	if texts == nil && kind == "header" && c.headers.json != "" {
		texts = c.headers.find(name)
	}
	return texts
}

// reset empties the call for another line.
func (c *Call) reset() { *c = Call{Size: -1, named: c.named[:0]} }
