package route

import (
	"net/url"
	"strings"
)

// Path returns a path as net/http shows it to routers: decoded, unless it is escaped in another way than
// net/http escapes it. Without a method, which is gRPC, it is the path that was sent.
func Path(method, sent string) string {
	if method == "" || strings.IndexByte(sent, '%') < 0 {
		return sent
	}
	u := url.URL{}
	decoded, err := url.PathUnescape(sent)
	if err != nil {
		return sent // net/http refuses such a path
	}
	if u.Path = decoded; u.EscapedPath() != sent {
		return sent
	}
	return decoded
}

// Param returns the text that the wildcard of a name matched in a path that was sent, or "". It finds
// wildcards that are whole segments of the pattern: :name and {name}.
func Param(pattern, sent, name string) string {
	segments := strings.Split(sent, "/")
	for i, part := range strings.Split(pattern, "/") {
		if i < len(segments) && (part == ":"+name || part == "{"+name+"}") {
			text, err := url.PathUnescape(segments[i])
			if err != nil {
				return segments[i]
			}
			return text
		}
	}
	return ""
}
