package fiberlimit

import (
	"bytes"
	"strings"

	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"
)

// Header returns the values of the header's lines, and none of a trailer. fasthttp appends the
// trailers of a body in chunks to the headers, behind the lines that a proxy set.
func (v view) Header(name string) []string {
	header := &v.c.Request().Header
	values := valuesOf(header, name, v.c.App().Config().DisableHeaderNormalizing)
	raw := header.RawHeaders()
	// ContentLength does not tell: for chunks without content it is 0.
	if countLines(raw, fiber.HeaderTransferEncoding) == 0 {
		return values
	}
	return values[:min(len(values), countLines(raw, name))]
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

// countLines returns the number of a header's lines in the block of headers as it was sent. A line
// that begins with white space continues the one before it.
func countLines(raw []byte, name string) (n int) {
	for line := range bytes.Lines(raw) {
		key, _, isHeader := bytes.Cut(line, []byte(":"))
		if isHeader && strings.EqualFold(string(bytes.TrimRight(key, " \t")), name) {
			n++
		}
	}
	return n
}
