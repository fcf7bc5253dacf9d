package limitheader

import (
	"net/http"

	"github.com/accesslimit/accesslimit/core/adapter"
)

// The names of headers are in the canonical form of net/http, so that setting them needs no
// conversion. Their case has no meaning.
const (
	headerRateLimit  = "Ratelimit"
	headerPolicy     = "Ratelimit-Policy"
	headerXLimit     = "X-Ratelimit-Limit"
	headerXRemaining = "X-Ratelimit-Remaining"
	headerXReset     = "X-Ratelimit-Reset"
)

// textAdder and textSetter are headers that copy the bytes passed to them, as fasthttp's do, so
// that no string has to be made for a value.
type (
	textAdder interface {
		adapter.HeaderWriter
		AddBytesV(name string, value []byte)
	}
	textSetter interface {
		SetBytesV(name string, value []byte)
	}
)

// allValues returns the values of a header, or nil if the reply cannot show them (see
// adapter.HeaderWriter).
func allValues(from adapter.HeaderWriter, name string) (lines []string) {
	switch from := from.(type) {
	case http.Header:
		return from[name]
	case interface{ Values(name string) []string }:
		return from.Values(name)
	case interface{ PeekAll(name string) [][]byte }: // fasthttp's ResponseHeader
		for _, line := range from.PeekAll(name) {
			lines = append(lines, string(line))
		}
		return lines
	default:
		return nil
	}
}

// firstValue returns the first value of a header, or "" if there is none or the reply cannot show
// it (see adapter.HeaderWriter).
func firstValue(from adapter.HeaderWriter, name string) string {
	switch from := from.(type) {
	case http.Header:
		if lines := from[name]; len(lines) > 0 {
			return lines[0]
		}
		return ""
	case interface{ Get(name string) string }:
		return from.Get(name)
	case interface{ Peek(name string) []byte }: // fasthttp's ResponseHeader
		return string(from.Peek(name))
	default:
		return ""
	}
}
