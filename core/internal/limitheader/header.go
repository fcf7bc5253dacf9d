package limitheader

import "net/http"

// The names of headers are in the canonical form of net/http, so that setting them needs no
// conversion. Their case has no meaning.
const (
	headerRateLimit  = "Ratelimit"
	headerPolicy     = "Ratelimit-Policy"
	headerXLimit     = "X-Ratelimit-Limit"
	headerXRemaining = "X-Ratelimit-Remaining"
	headerXReset     = "X-Ratelimit-Reset"
)

// Header is the headers of a reply. See core.HeaderWriter. It is an alias, so that a value of that
// type needs no conversion.
type Header = interface {
	Set(name, value string)
	Add(name, value string)
}

// textAdder and textSetter are headers that copy the bytes passed to them, as fasthttp's do, so that
// a value needs no string of its own.
type (
	textAdder interface {
		Header
		AddBytesV(name string, value []byte)
	}
	textSetter interface {
		SetBytesV(name string, value []byte)
	}
)

// firstValue returns the first value of a header, or "" if there is none or the reply cannot show
// it (see core.HeaderWriter).
func firstValue(from Header, name string) string {
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
