package fiberlimit

import (
	"bytes"
	"slices"
	"strings"

	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"
)

// Header returns the values of the header's lines in the order in which they were sent, and none of
// a trailer. fasthttp's own order says nothing about proxies: it deletes a line, such as
// Transfer-Encoding before an empty body, by moving the last one into its place, and it appends the
// trailers of a body in chunks. If c.Get returns another value than the first, it comes before
// them: a rule that counts by the first value counts what a handler reads.
func (v view) Header(name string) []string {
	header := &v.c.Request().Header
	values := valuesOf(header, name, v.c.App().Config().DisableHeaderNormalizing)
	if len(values) == 0 {
		return nil
	}
	raw := header.RawHeaders()
	// ContentLength does not tell: for chunks without content it is 0.
	chunked := len(linesOf(raw, fiber.HeaderTransferEncoding)) > 0
	if len(values) == 1 && !chunked {
		return values
	}
	ordered := inOrder(values, linesOf(raw, name), chunked)
	if len(ordered) > 0 && ordered[0] != values[0] {
		ordered = slices.Insert(ordered, 0, values[0])
	}
	return ordered
}

// inOrder returns the values in the order of the lines that were sent. A value that was not sent is
// from a middleware, and takes the place of a line that it has replaced. If there is no such line,
// it comes last, or is left out if it may be a trailer.
func inOrder(values, sent []string, trailers bool) (ordered []string) {
	left := make(map[string]int)
	for _, value := range values {
		left[value]++
	}
	replaced := make([]bool, len(sent))
	for i, line := range sent {
		left[line]--
		replaced[i] = left[line] < 0
	}
	values = slices.DeleteFunc(slices.Clone(values), func(value string) bool {
		left[value]--
		return left[value] < 0
	})
	for i, line := range sent {
		if !replaced[i] {
			ordered = append(ordered, line)
		} else if len(values) > 0 {
			ordered, values = append(ordered, values[0]), values[1:]
		}
	}
	if trailers {
		return ordered
	}
	return append(ordered, values...)
}

// valuesOf returns copies of the values. If names are as they were sent, it finds them in any
// spelling. Otherwise a caller could avoid the proxy's header by choosing another one.
func valuesOf(header *fasthttp.RequestHeader, name string, asSent bool) (values []string) {
	if !asSent {
		for _, value := range header.PeekAll(name) {
			values = append(values, string(value))
		}
		return values
	}
	for key, value := range header.All() {
		if strings.EqualFold(string(key), name) {
			values = append(values, string(value))
		}
	}
	return values
}

// linesOf returns the values of a header's lines in the block of headers as it was sent. A line
// that begins with white space continues the one before it.
func linesOf(raw []byte, name string) (values []string) {
	var ours bool // the line before is the header's
	for line := range bytes.Lines(raw) {
		continues := line[0] == ' ' || line[0] == '\t'
		switch key, value, _ := bytes.Cut(line, []byte(":")); {
		case continues && ours:
			values[len(values)-1] += " " + string(bytes.Trim(line, " \t\r\n"))
		case !continues:
			if ours = strings.EqualFold(string(bytes.TrimRight(key, " \t")), name); ours {
				values = append(values, string(bytes.Trim(value, " \t\r\n")))
			}
		}
	}
	return values
}
