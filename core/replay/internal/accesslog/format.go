package accesslog

import (
	"errors"
	"fmt"
	"strings"
)

// parser reads a line into a call. It returns an error if the line does not have its form.
type parser interface {
	parse(line string, t *clock, c *Call) error
}

// Format is the form of a log's lines. The zero Format is detected from the first lines.
type Format struct {
	name   string
	parser parser
	fields map[field][]string // as [ParseFormat] was given them
}

// patterns are the forms of lines in text that have a name.
var patterns = map[string]namedPattern{
	"common":         {text: `$remote_addr $ident $remote_user [$time_local] "$request" $status $body_bytes_sent`},
	"combined":       {text: `$remote_addr $ident $remote_user [$time_local] "$request" $status $body_bytes_sent "$http_referer" "$http_user_agent"`},
	"vhost_combined": {text: `$host $remote_addr $ident $remote_user [$time_local] "$request" $status $body_bytes_sent "$http_referer" "$http_user_agent"`},
	"traefik_common": {text: `$remote_addr - $remote_user [$time_local] "$request" $status $body_bytes_sent "$http_referer" "$http_user_agent" ` +
		`$count "$router" "$server" ${request_milliseconds}ms`},
	"envoy_text": envoyText, "istio_text": istioText,
}

// objects are the forms of lines in JSON that have a name, with the paths of their fields. A proxy whose
// form can be configured has several paths for a field.
var objects = map[string]jsonFormat{
	"caddy": {paths: map[string][]string{
		"time": {"ts"}, "seconds": {"duration"}, "address": {"request.remote_ip", "request.remote_addr", "request.client_ip"},
		"method": {"request.method"}, "uri": {"request.uri"}, "host": {"request.host"}, "status": {"status"}, "user": {"user_id"},
		"size": {"bytes_read"},
	}, headers: "request.headers"},
	"traefik": {paths: map[string][]string{
		"start": {"StartUTC"}, "nanoseconds": {"Duration"}, "address": {"ClientHost"}, "method": {"RequestMethod"}, "uri": {"RequestPath"},
		"host": {"RequestHost"}, "status": {"DownstreamStatus"}, "user": {"ClientUsername"}, "size": {"RequestContentSize"},
	}, prefix: "request_"},
	"envoy": {paths: map[string][]string{
		"start": {"start_time"}, "milliseconds": {"duration"}, "address": {"downstream_remote_address", "downstream_remote_address_without_port"},
		"method": {"method", "req_method", "request_method", ":method"}, "uri": {"path", "x-envoy-original-path", "x-envoy-origin-path", "request_path", ":path"},
		"host": {"authority", ":authority"}, "status": {"response_code"}, "size": {"bytes_received"},
		"header:X-Forwarded-For": {"x_forwarded_for", "x-forwarded-for"}, "header:User-Agent": {"user_agent", "user-agent"},
	}},
	"json": {paths: nginxPaths()},
}

type jsonFormat struct {
	paths   map[string][]string
	headers string // the path of an object with the request's headers
	prefix  string
}

// nginxPaths returns the paths of the format json: the names that nginx's variables have, and a few more
// for the time.
func nginxPaths() map[string][]string {
	paths := map[string][]string{"time": {"time", "ts", "timestamp", "@timestamp"}, "method": {"method"}, "address": {"ip"}}
	for name, f := range variables {
		paths[f.kind] = append(paths[f.kind], name)
	}
	return paths
}

// inOrder are the names of all formats, in the order in which they are tried.
var inOrder = []string{"traefik_common", "vhost_combined", "combined", "common", "istio_text", "envoy_text", "caddy", "traefik", "envoy", "json"}

// ParseFormat reads a format: its name, an nginx log_format, a format string of Envoy, or "" to
// detect it. fields names the variable, or the path in JSON, from which a field is read, in place of
// what the format says of that field.
func ParseFormat(text string, fields map[string]string) (Format, error) {
	f := Format{name: text, fields: make(map[field][]string, len(fields))}
	for name, from := range fields {
		parsed, err := parseField(name)
		switch {
		case err != nil:
			return f, err
		case from == "":
			return f, fmt.Errorf("field %q is read from nothing", name)
		}
		f.fields[parsed] = []string{strings.Trim(strings.TrimPrefix(from, "$"), "%")}
	}
	if text == "" {
		return f, nil
	}
	return f.named(text)
}

// named returns the format of a name, or of a log_format, with the same fields.
func (f Format) named(text string) (Format, error) {
	object, isJSON := objects[text]
	own, isText := patterns[text]
	f.name = text
	switch {
	case isJSON:
		f.parser = object.parser(f.fields)
		return f, nil
	case !isText && !strings.ContainsAny(text, "$%"):
		return f, fmt.Errorf("there is no format %q: the formats are %s, or a log_format of nginx or Envoy", text, strings.Join(inOrder, ", "))
	case !isText:
		own.text = text
	}
	p, err := parsePattern(own.text, own.with(f.fields))
	if err != nil {
		return f, err
	}
	p.open, f.parser = isText, p
	return f, nil
}

// parser returns the parser of a JSON format with other paths for some fields.
func (j jsonFormat) parser(others map[field][]string) *jsonFields {
	root := &jsonFields{prefix: j.prefix}
	for name, paths := range j.paths {
		f, _ := parseField(name)
		if others[f] != nil || f.kind == "time" && others[field{kind: "start"}] != nil {
			continue
		}
		for _, path := range paths {
			root.add(path, f)
		}
	}
	for f, paths := range others {
		root.add(paths[0], f)
	}
	if j.headers != "" {
		root.at(j.headers, func(at *jsonFields) { at.headers = true })
	}
	return root
}

// ErrFormat is the error of a log whose format cannot be detected.
var ErrFormat = errors.New("has no known format")

// detect returns the format with which most of the lines are calls, the first of those in inOrder.
func (f Format) detect(lines []string, t clock) (Format, error) {
	best, most := f, 0
	for _, name := range inOrder {
		tried, err := f.named(name)
		if err != nil {
			continue // the format has no variable from which a field is to be read
		}
		if calls := tried.calls(lines, t); calls > most {
			best, most = tried, calls
		}
	}
	if most == 0 {
		return f, fmt.Errorf("%w: it begins with %.200q", ErrFormat, lines[0])
	}
	return best, nil
}

// calls counts the lines that are calls. Those with an address count twice.
func (f Format) calls(lines []string, t clock) (n int) {
	var c Call
	for _, line := range lines {
		if err := f.parse(line, &t, &c); err == nil {
			n++
			if c.Address.IsValid() {
				n++
			}
		}
	}
	return n
}

// errNoCall is returned for a line that has the form of the log and is not about a call: a message of
// the proxy, or a connection on which no request came.
var errNoCall = errors.New("is not about a call")

// parse reads a line into an empty call.
func (f *Format) parse(line string, t *clock, c *Call) error {
	c.reset()
	if err := f.parser.parse(line, t, c); err != nil {
		return err
	}
	if c.URI == "" || !isToken(c.Method) {
		return errNoCall
	}
	switch {
	case c.hasStart:
		c.written = c.Began + c.Took
	case c.hasTime:
		c.Began = c.written - c.Took/t.unit*t.unit // or a log in whole seconds would lose its order
	default:
		return errors.New("has no time")
	}
	return nil
}
