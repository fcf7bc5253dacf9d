package fiber3limit

import (
	"bytes"
	"strings"

	"github.com/gofiber/fiber/v3"
	"github.com/valyala/fasthttp"
)

// Header returns the values of the header's lines that came before the body, and none of a trailer.
// Fasthttp keeps the trailers of a body in chunks behind them, under the same names, but not in the
// raw header.
func (v view) Header(name string) []string {
	header := &v.c.Request().Header
	values := valuesOf(header, name, v.c.App().Config().DisableHeaderNormalizing)
	raw := header.RawHeaders()
	if len(values) == 0 || countLines(raw, fiber.HeaderTransferEncoding) == 0 {
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

// countLines returns the number of lines of a raw header that have this name.
func countLines(raw []byte, name string) (n int) {
	for line := range bytes.Lines(raw) {
		key, _, _ := bytes.Cut(line, []byte(":"))
		if strings.EqualFold(string(bytes.TrimRight(key, " \t")), name) {
			n++
		}
	}
	return n
}
