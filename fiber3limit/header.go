package fiber3limit

import (
	"strings"

	"github.com/valyala/fasthttp"

	"github.com/accesslimit/accesslimit/core/adapter"
)

// Header returns the values of the header's lines in the order in which they were sent, and none of
// a trailer: see adapter.SentOrder.
func (v view) Header(name string) []string {
	header := &v.c.Request().Header
	return adapter.SentOrder(header.RawHeaders(), name, valuesOf(header, name, v.c.App().Config().DisableHeaderNormalizing))
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
